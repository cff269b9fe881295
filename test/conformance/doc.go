// Package deviceallocationconformance runs the case suite of kube-scheduler's
// own allocator against the allocator of device-scheduler.
//
// It decides which cases apply: those that need a feature which this version
// refuses are skipped, judged by the objects of the case and not by its name.
// Where kube-scheduler aborts a pod with an error and device-scheduler rejects
// one node with a typed reason, the adapter turns the reason into the error that
// the suite expects.
//
// It is a module of its own because the suite is an internal package of
// k8s.io/dynamic-resource-allocation/structured, and the go command lets only
// packages below that path import it. The script run counts the cases.
package deviceallocationconformance
