// Package profiles decides whether the profiles of one scheduler process can run with the DeviceAllocation plugin:
// which plugins they really enable at which extension point, and which combinations are refused.
//
// It never changes a configuration and never looks at plugin args (package config does). The binary calls it at
// start, after kube-scheduler's own defaulting has merged the default plugins into each profile.
package profiles
