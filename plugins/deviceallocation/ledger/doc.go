// Package ledger knows who holds which device, share, counter and capacity: from
// the ResourceClaims that were seen, plus the reservations of scheduling attempts
// in flight.
//
// A device is free only if no observed claim and no reservation holds it.
// Holders are counted by claim, because two schedulers may have given one
// device to two claims: it is not free before both are gone. A reservation
// ends when its claim is seen with an allocation, or when the attempt takes it
// back; it never expires. Admin access holds nothing.
//
// What devices draw from the counters of their pool (KEP-4815) is in no claim.
// The ledger learns it when it is joined with a snapshot of the inventory, and
// remembers it for as long as the claim holds the device: a driver that takes
// the device away or changes it does not give back what a running pod uses. Of
// what the device drew then and draws now, the larger amount is charged.
//
// The package never writes to the API. The plugin feeds a Ledger from its
// informer handlers, its queueing hints and the answers to its own writes.
package ledger
