// Package deviceallocationconformance runs the case suite of kube-scheduler's
// own allocator against the allocator of device-scheduler.
//
// No case is left out, and each runs with the feature gates that it names. The
// allocator runs in its compatible mode, which reproduces the verdicts of
// kube-scheduler also where they are faults; what differs in the default mode is
// pinned beside the allocator. Where kube-scheduler aborts a pod with an error
// and device-scheduler rejects one node with a typed reason, the adapter turns
// the reason into the error that the suite expects.
//
// It is a module of its own because the suite is an internal package of
// k8s.io/dynamic-resource-allocation/structured, and the go command lets only
// packages below that path import it. The script run counts the cases.
package deviceallocationconformance
