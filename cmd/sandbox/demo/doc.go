// Package demo runs the examples of this project on a simulated cluster and
// checks what they promise: `make demo`, or `sandbox demo`.
//
// It decides in which order the examples run, when a pod has settled, whether
// what is there is what expect.yaml promises, and what the tables show.
//
// Three kinds of files:
//
//   - what is promised and what is there: example.go, promise.go, observe.go,
//     device.go; check.go and pair.go compare the two. Pure, apart from the
//     reading.
//   - what makes it happen: run.go (from start to stop), play.go (the examples),
//     stage.go (one example), mishap.go (what breaks then), driver.go (what
//     drivers do), scheduler.go (the process under demonstration), apply.go,
//     settle.go.
//   - what one sees: table.go, report.go. Pure.
//
// It never helps the scheduler: pods are settled when the scheduler says that it
// has nothing left to try, and a promise that does not hold is reported, not
// waited for. It never changes a placement by other means than those that an
// administrator has: applying objects, tainting a device, draining a node.
//
// Who calls it: package main of the sandbox, and the integration tests, which play
// the examples whose feature gates are off by default.
package demo
