// Package perf measures schedulers with kube-scheduler's own scheduler_perf: an
// API server, etcd, the controllers that make and delete claims, and a
// scheduler, once with DeviceAllocation and its shipped configuration, once with
// DynamicResources and kube-scheduler's defaults, alternating in one run.
//
// The test binary plays all parts:
//
//   - With -perf.set it is the harness (run.go): it starts itself once for each
//     workload, scheduler and round, so that CPU time and memory are those of one
//     run, and prints the table (table.go).
//   - With -perf.workload it is such a child (child_test.go, recorder.go). In it
//     scheduler_perf does the steps of the workload; what a driver does is done
//     by ours (driver.go), since scheduler_perf creates slices one by one.
//   - Under the name etcd it is etcd, which scheduler_perf looks for in PATH.
//
// Workloads are the files in the folder workloads, the objects in them those in
// the folder objects. README.md says what they are and how to read the table.
// What the plugin alone costs is measured in the package decision.
package perf
