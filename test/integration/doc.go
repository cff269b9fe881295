// Package integration tests device-scheduler as its users run it: the binary
// with the shipped configuration and the shipped rights, against a real API
// server. README.md says which test checks which behaviour.
//
// It never looks into the scheduler: everything is asserted through the API.
// What is needed to run one is in package harness.
package integration
