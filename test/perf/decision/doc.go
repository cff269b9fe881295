// Package decision measures the plugin alone: what one decision of the
// scheduler costs with DeviceAllocation and with kube-scheduler's own
// DynamicResources, without an API server.
//
// A decision is what the scheduler does for one pod from taking it out of the
// queue to Reserve: the snapshot of the nodes, PreFilter, Filter on as many
// nodes as the scheduler samples, Score, assuming the pod, Reserve. All of that
// is kube-scheduler's own code, on the informers of a clientset in memory. The
// profile has the plugin that is measured and what no profile can do without
// (PrioritySort, DefaultBinder), so that what is left is the plugin.
//
// Nothing here writes to the API: what a decision costs with all its writes and
// events is measured by the package perf.
package decision
