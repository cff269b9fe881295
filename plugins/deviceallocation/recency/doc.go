// Package recency decides whether an observed API object is news.
//
// The scheduler learns about one event twice: a queueing hint gets it before
// the pod is woken up, and the informer handler of the plugin gets it as well,
// in either order. Whoever keeps state (inventory, ledger) therefore asks this
// package first and ignores everything that is not newer than what it has seen.
//
// It never keeps the objects themselves, and never waits or looks at a clock.
package recency
