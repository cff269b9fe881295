// Package capacity decides what one allocation of a device consumes of the
// capacities that the device publishes, and whether that still fits next to
// what other allocations hold (KEP-5075, consumable capacity).
//
// It works in two steps. Demand applies defaults and request policies to one
// request on one device and keeps the quantities as they go into the claim's
// status. A Table turns quantities into vectors of int64, so that a search can
// add, subtract and compare them a million times without touching a Quantity.
//
// Rules are those of the allocator of Kubernetes 1.37, checked against it case
// by case. What that one gets wrong on objects that validation would refuse, a
// panic on a step of zero for instance, is here an error about the one device.
//
// The package never looks at claims, at more than one device or at feature
// gates. The allocator calls Demand and Fits, the ledger sums Amounts, and the
// inventory uses Table for shared counters too. Nothing here changes its
// arguments unless the comment says so, and all functions may be called
// concurrently on shared API objects.
package capacity
