// Package cluster is a whole Kubernetes cluster for the tests of package e2e, its
// only caller: the control plane of the sandbox, device-scheduler with the
// configuration and the rights that the project ships, and real nodes.
//
// Env is what one test has of it: a namespace, and the checks that hold whatever
// the test does. The one that all others rest on compares three things: what a
// container printed about its devices, what the status of its claims says, and
// what the test expects.
package cluster
