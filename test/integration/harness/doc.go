// Package harness runs device-scheduler against a real control plane: the API
// server, etcd, the controller manager and simulated kubelets of the sandbox.
//
// It decides how the scheduler is run: with the ServiceAccount, the roles and
// the configuration file that the project ships, never as administrator. And
// it decides what must hold after every test: no device in two allocations, no
// reservation for a pod that is gone, no refused request and no panic in the
// scheduler's log.
//
// It never decides what a placement should look like: that is up to the tests
// of package integration, its only caller.
package harness
