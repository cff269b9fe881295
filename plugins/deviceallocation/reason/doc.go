// Package reason words why a pod cannot have its devices: short and countable
// for the condition of the pod, from the typed reasons of the rooms below.
//
// The scheduler counts equal texts over all nodes, as in
//
//	0/12 nodes are available: 4 request "gpu": all matching devices in use,
//	8 request "gpu": no devices on the node.
//
// so numbers that differ between nodes stay out, and what must be named to be
// mended (a faulty pool, a device on which a selector fails) stays in. It
// decides nothing.
package reason
