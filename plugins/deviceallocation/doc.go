// Package deviceallocation is a kube-scheduler plugin that chooses devices for
// pods: it replaces DynamicResources with an allocator of its own and works
// from the public resource.k8s.io/v1 API alone.
//
// # The life of a pod
//
//   - PreEnqueue (preenqueue.go): the pod's claims exist and are its own, or it
//     stays out of the queue with the name of what is missing.
//   - PreFilter (prefilter.go): what the pod needs becomes a Problem; what the
//     cluster offers becomes two snapshots, of the inventory (devices) and of
//     the ledger (who holds them), both of which are kept up to date by events
//     (feed.go) and not rebuilt. Nodes without enough matching devices are left
//     out at once (candidates.go).
//   - Filter (filter.go): in parallel for many nodes, the allocator looks for
//     the best devices on a node, unless it has done so for an equal pod and
//     nothing has changed since (package verdict). One node's trouble rejects
//     that node only. The goroutines share no lock.
//   - PostFilter (postfilter.go): when no node is left, an allocation that ties
//     the pod to an unsuitable node is taken back.
//   - Score (score.go): nodes are compared by what the allocator found. Pods that
//     need the same have the same signature (sign.go), so that the scheduler can
//     go on with the nodes that it found for the pod before.
//   - Reserve (reserve.go): the chosen devices are entered in the ledger, which
//     refuses what somebody else took meanwhile. Reserving twice is harmless,
//     because pod groups are reserved twice.
//   - PreBind (prebind.go): the claims are written, all of them or none. Then
//     the pod waits for devices that have to be got ready (bindingwait.go).
//   - Unreserve (reserve.go): nothing stays reserved, and what was written for
//     a pod that does not run is taken back.
//   - Queueing hints (hints.go, hintclaim.go, hintslice.go): an event wakes a
//     waiting pod if it may help, by what the pod has needed in its last attempt
//     (waiting.go). What an event means is worked out once for all pods. The hint
//     feeds the event into inventory or ledger before it answers: the
//     scheduler's handlers and ours run in any order, and a pod woken before
//     our state has changed would fail again and then sleep for minutes.
//
// # Groups
//
// Pods of a PodGroup are tried together, pod by pod, in one cycle of the
// scheduler; then everything is taken back and reserved again for good. Three
// things differ from a pod of its own:
//
//   - Pods may share a claim before it is written: the first one chooses the
//     devices, the others join (podgroupclaims.go). The table of allocations in
//     flight (inflight.go) counts them, so that one which gives up takes nothing
//     from the others, and turns.go lets one write after the other.
//   - A claim that the group lists itself is reserved for the group, once. What
//     is reserved so is not taken back while pods of the group may rely on it.
//   - Instead of PostFilter, PodGroupPostFilter (podgrouppostfilter.go) gives
//     back what keeps the group from running.
//
// # Shell and core
//
// This package talks to the framework, the informers and the API server. What
// it decides is decided in the packages below it, which are pure: device,
// capacity, inventory, ledger, selector, problem, allocator, objective, result,
// reason, verdict. All errors become statuses in status.go; all writes go through
// claimwriter.
package deviceallocation
