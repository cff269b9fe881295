// Package result writes a Solution down as the status of a claim: devices,
// configuration and node selector, exactly as kubelet, drivers and the API
// server's validation expect them (resource.k8s.io/v1 AllocationResult).
//
// It never chooses. The plugin calls it in Reserve.
package result
