// Package layering holds the tests that keep the rooms of the project in order:
// who may import whom, what the pure core may depend on, and who may write to
// the API server. They also hold the table of behaviours in test/integration to
// the tests that it names and to those of kube-scheduler.
//
// It decides nothing at run time and exports nothing. Each rule prints its
// reason when it is broken. The rules are those of the design: a change of one
// of them is a change of the design.
package layering
