// Package inventory turns ResourceSlices and DeviceTaintRules into complete,
// validated pools, and pools into what each node can reach.
//
// It decides which generation of a pool counts, whether the pool is complete
// and consistent, which taints a device has, from which nodes it can be used,
// and what it draws from the counters of its pool. With a feature gate off, it
// leaves out what kube-scheduler leaves out. It never reads claims and never says whether a device is free; that is
// the ledger's part.
//
// The plugin feeds an Inventory from its informer handlers and queueing hints
// and takes one Snapshot per scheduling cycle. An event marks its pool; the
// next Snapshot compiles the marked pools, and only the nodes that such a pool
// reaches get a new view. All else is shared with the snapshot before.
//
// Epochs number contents: two pools, node pools or node views with the same
// epoch are equal, so a verdict that was computed for an epoch stays true for
// as long as the epoch is seen. All epochs of one Inventory come from one
// counter. 0 is the epoch of a view without pools.
package inventory
