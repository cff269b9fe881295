// Package allocator finds devices on one node for one Problem: the best set
// according to an Objective, or the reason why there is none.
//
// # What is searched
//
// The survey (survey.go, surveyor.go) looks at each device once. Devices that
// the Problem cannot tell apart form one group. What several devices or shares
// draw on, counters of counter sets and capacities of shared devices, becomes a
// list of numbers, the stocks (offer.go). Devices that draw on the same stocks
// form a cell (cell.go): the partitions of one GPU, or one device with its
// shares. Nothing that happens in one cell concerns another.
//
// # How the search stays small
//
//   - Symmetry (residue.go): of devices that are interchangeable only the first
//     is tried. Two devices of a group are, and so are the same partitions of two
//     GPUs of which the same is left. What has failed is excluded together with
//     all that is interchangeable with it, for the rest of the request and for
//     the next request if that asks for the same.
//   - Memory (failures.go): a state of the cells from which nothing was found is
//     not entered a second time by another way.
//   - Bounds (bounds.go, values.go, kinds.go): before each step they show whether
//     the rest can still succeed. A matching of requests with groups, the values
//     that a matchAttribute constraint can still take, the number of different
//     values for distinctAttribute, and for each kind of counter what all
//     requests together need at least against what is left on the node.
//   - Cost (leastcost.go): what is still missing has a lower bound, so that
//     branches which cannot beat the best solution so far are left out.
//
// It is complete: if the stock allocator finds devices, so does Solve, and the
// other way round. Without an Objective it takes the very devices that the
// stock allocator takes. Its effort is limited in steps and never in seconds,
// so that the same input gives the same result on any machine; the context is
// the outer limit.
//
// It never does I/O, never looks at other nodes, logs nothing, starts no
// goroutine. The plugin calls it from Filter, in parallel for many nodes.
package allocator
