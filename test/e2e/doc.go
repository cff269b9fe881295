// Package e2e has the tests that need real nodes: they show that a kubelet accepts
// what device-scheduler writes into claims, that a DRA driver prepares the very
// device that was chosen, and that a container finds it; and that no device is
// lost when a part of the cluster fails. See README.md; "make e2e" runs them.
//
// Each test creates objects as a user would and compares what the containers
// printed with the status of their claims. What a placement looks like in detail
// is for the integration tests.
package e2e
