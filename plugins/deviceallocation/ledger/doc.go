// Package ledger knows who holds which device: from the ResourceClaims that
// were seen, plus the reservations of scheduling attempts in flight.
//
// A device is free only if no observed claim and no reservation holds it.
// Holders are counted by claim, because two schedulers may have given one
// device to two claims: it is not free before both are gone. A reservation
// ends when its claim is seen with an allocation, or when the attempt takes it
// back; it never expires.
//
// The package never reads ResourceSlices, so it does not know whether a device
// still exists, and never writes to the API. The plugin feeds a Ledger from its
// informer handlers, its queueing hints and the answers to its own writes.
package ledger
