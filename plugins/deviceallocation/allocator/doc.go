// Package allocator finds devices on one node for one Problem: the best set
// according to an Objective, or the reason why there is none.
//
// The search rests on three ideas. Devices that the Problem cannot tell apart
// form one group, and only the first free member of a group is ever tried.
// Before each step, bounds show whether the rest can still succeed: a matching
// of requests with groups, the values that a matchAttribute constraint can
// still take, the number of different values for distinctAttribute. And the
// cost of what is still missing has a lower bound, so that branches that cannot
// beat the best solution found so far are left out.
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
