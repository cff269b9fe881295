// Package isolation runs a program in mount, network and process namespaces of
// its own, so that nothing it starts outlives it and several can run at a time on
// one machine: they have the same addresses, paths and process IDs without meeting.
//
// What no namespace covers is removed at the end: the temporary directory, and the
// control groups that a container runtime left because its containers were killed.
//
// It needs root and knows nothing about Kubernetes.
package isolation
