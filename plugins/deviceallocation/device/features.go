package device

// Features are the feature gates of Kubernetes that decide what devices, claims
// and classes mean. They are resolved once, when the scheduler starts, and never
// change. With a feature off, objects that use it are treated as kube-scheduler
// treats them: refused, ignored or taken at their older meaning.
//
// The zero value has everything off; use AllFeatures for all that is supported.
type Features struct {
	AdminAccess             bool // DRAAdminAccess, KEP-5018
	BindingConditions       bool // DRADeviceBindingConditions, KEP-5007
	CompatibilityGroups     bool // DRADeviceCompatibilityGroups, KEP-5963
	ConsumableCapacity      bool // DRAConsumableCapacity, KEP-5075
	DerivedAttributes       bool // DRADerivedAttributes, KEP-6080
	DeviceTaints            bool // DRADeviceTaints, KEP-5055
	FractionalCapacityRange bool // DRAFractionalCapacityRange, KEP-5075
	ListTypeAttributes      bool // DRAListTypeAttributes, KEP-5491
	// NodeAllocatableResources is DRANodeAllocatableResources, KEP-5517. While it
	// is on, devices that use it are refused.
	NodeAllocatableResources bool
	OptionalNodeOperations   bool // DRAOptionalNodeOperations, KEP-5945
	PartitionableDevices     bool // DRAPartitionableDevices, KEP-4815
	PrioritizedList          bool // DRAPrioritizedList, KEP-4816
}

// AllFeatures returns the set with everything on that is supported.
func AllFeatures() Features {
	return Features{
		AdminAccess:             true,
		BindingConditions:       true,
		CompatibilityGroups:     true,
		ConsumableCapacity:      true,
		DerivedAttributes:       true,
		DeviceTaints:            true,
		FractionalCapacityRange: true,
		ListTypeAttributes:      true,
		OptionalNodeOperations:  true,
		PartitionableDevices:    true,
		PrioritizedList:         true,
	}
}

// DistinctAttribute tells whether constraints with distinctAttribute are
// understood. The field came with consumable capacity; kube-scheduler, which
// chooses one of three allocators by its gates, then knows it in all but the
// oldest of them.
func (f Features) DistinctAttribute() bool {
	return f.BindingConditions || f.CompatibilityGroups || f.ConsumableCapacity || f.DerivedAttributes ||
		f.FractionalCapacityRange || f.ListTypeAttributes || f.OptionalNodeOperations
}
