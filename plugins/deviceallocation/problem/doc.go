// Package problem turns the claims of a pod, the classes that they name and
// the feature gates that are on into one canonical Problem.
//
// It decides what is asked for: which alternatives a request has, which
// selectors a device must match, which constraints cover which alternative,
// and what must be refused because it cannot be understood in full. Equal pods
// give equal signatures, so that verdicts can be shared between them. It never
// looks at nodes, devices or allocations.
//
// The plugin builds a Problem in PreFilter; allocator, result and reason read
// it. A Problem is immutable and may be shared between goroutines.
package problem
