// Package selector answers whether a device matches a CEL expression of a
// DeviceClass or a request, and what attribute an expression derives from it.
//
// It compiles each expression once, in the environment of
// k8s.io/dynamic-resource-allocation/cel (same language, same cost limits as
// kube-scheduler), finds in the checked syntax tree which attributes and
// capacities the expression reads, and memoises the verdict by their values.
// 40,000 GPUs of three models cost three evaluations.
//
// It never fails a pod because one device is odd: a run-time error is the
// verdict of that device, and the caller decides what it means.
//
// The room "problem" compiles, the room "allocator" asks for verdicts.
package selector
