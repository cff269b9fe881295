package device

import (
	"cmp"
	"unique"
)

// Name is an interned string. Two names are equal exactly when their strings
// are; comparing them costs one pointer comparison.
type Name = unique.Handle[string]

// Intern returns the Name of s. It is safe for concurrent use.
func Intern(s string) Name { return unique.Make(s) }

// PoolID identifies a resource pool. Pool names are chosen by drivers, so they
// are unique only together with the driver's name.
type PoolID struct {
	Driver, Pool Name
}

// NewPoolID interns a driver's and a pool's name.
func NewPoolID(driver, pool string) PoolID {
	return PoolID{Driver: Intern(driver), Pool: Intern(pool)}
}

// String returns driver/pool.
func (p PoolID) String() string { return p.Driver.Value() + "/" + p.Pool.Value() }

// Compare orders pools by driver, then by name: the order in which
// kube-scheduler looks for devices, which drivers use to state a preference.
func (p PoolID) Compare(other PoolID) int {
	return cmp.Or(
		cmp.Compare(p.Driver.Value(), other.Driver.Value()),
		cmp.Compare(p.Pool.Value(), other.Pool.Value()),
	)
}

// ID identifies a device in the cluster, as the result of an allocation does
// (resource.k8s.io/v1 DeviceRequestAllocationResult).
type ID struct {
	Driver, Pool, Device Name
}

// NewID interns the three names of a device.
func NewID(driver, pool, device string) ID {
	return ID{Driver: Intern(driver), Pool: Intern(pool), Device: Intern(device)}
}

// PoolID returns the pool that the device belongs to.
func (id ID) PoolID() PoolID { return PoolID{Driver: id.Driver, Pool: id.Pool} }

// String returns driver/pool/device.
func (id ID) String() string { return id.PoolID().String() + "/" + id.Device.Value() }
