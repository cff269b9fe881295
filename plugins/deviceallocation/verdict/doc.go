// Package verdict remembers what the allocator found out about nodes.
//
// A Cache has a Table for each problem signature and way of searching, and a
// Table has the last Verdict of each node. A Verdict is good for as long as all
// that it was made from is the same: the node's view of the inventory, what is
// held of each pool in that view, and whether the node can skip node
// operations. All of these are compared by their epochs, which never come back
// with another content, so a Verdict is never out of date: nothing has to tell
// the Cache that something has changed.
//
// A pod that looks like an earlier one costs a comparison per node and a search
// on the nodes that have changed since.
//
// What is not an answer is not remembered: a search that ran out of time, and
// errors that end the attempt of the pod.
package verdict
