// Package config decides what the arguments of the DeviceAllocation plugin mean: their fields, defaults, limits and
// the errors for arguments that cannot be what their author wanted. It also carries the two scheduler
// configurations that the project ships, so that tests and manifests use the very files that users get.
//
// It never looks at a cluster, never changes a value silently and never accepts what it does not understand: an
// argument with a typing error that is ignored schedules pods by other rules than the ones that were asked for.
//
// Callers: the plugin's factory (Decode), the packages that need the decoded values (DeviceAllocationArgs), and
// whatever installs or tests the shipped files (SecondScheduler, ReplaceDefault). The check of whole scheduler
// profiles lives in config/profiles, because it needs kube-scheduler's own types and this package must stay light.
package config
