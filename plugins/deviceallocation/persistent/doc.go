// Package persistent has a map whose versions share what did not change.
//
// The snapshots of inventory and ledger are immutable, but most events change
// one entry out of thousands. Copying a plain map for each snapshot would make
// the cost of an event grow with the cluster. Apart from the order of
// pool IDs it knows nothing about devices.
package persistent
