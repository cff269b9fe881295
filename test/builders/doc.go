// Package builders makes the API objects that tests need: slices, devices,
// classes, claims, nodes and pods.
//
// It decides nothing: what a test does not state stays empty, or has the only
// value that makes a valid object (one slice per pool, count 1). Builders are
// chained and end with Obj; a builder that is given to another one needs no
// Obj. Bad input panics, because it is a mistake in the test.
package builders
