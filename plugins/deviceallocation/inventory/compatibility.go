package inventory

import (
	"encoding/binary"
	"slices"
)

// Compatibility is what devices that draw from one counter set have in common:
// the intersection of their compatibility groups (KEP-5963). The zero value has
// no devices. It is immutable, and the order in which devices are added does
// not matter.
type Compatibility struct {
	members bool
	// mixed is set if devices have no group in common. Nothing goes together
	// with them then.
	mixed bool
	// groups of the devices that they have in common; empty if no device has
	// any.
	groups []string
}

// Empty reports whether no device draws from the set.
func (c Compatibility) Empty() bool { return !c.members }

// Admits reports whether a device with the given groups may be allocated
// together with those added so far.
func (c Compatibility) Admits(groups []string) bool {
	switch {
	case !c.members:
		return true
	case c.mixed:
		return false
	case len(c.groups) == 0 || len(groups) == 0:
		return len(c.groups) == len(groups)
	}
	return slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(c.groups, group) })
}

// Add returns what is left in common once a device with these groups is
// allocated as well.
func (c Compatibility) Add(groups []string) Compatibility {
	switch {
	case !c.members:
		return Compatibility{members: true, groups: groups}
	case !c.Admits(groups):
		return Compatibility{members: true, mixed: true}
	case len(c.groups) == 0:
		return c
	}
	var common []string
	for _, group := range c.groups {
		if slices.Contains(groups, group) {
			common = append(common, group)
		}
	}
	return Compatibility{members: true, groups: common}
}

// Append adds an unambiguous encoding of the state to key and returns it.
func (c Compatibility) Append(key []byte) []byte {
	switch {
	case !c.members:
		return append(key, 'n')
	case c.mixed:
		return append(key, 'm')
	}
	key = binary.AppendUvarint(append(key, 'g'), uint64(len(c.groups)))
	for _, group := range c.groups {
		key = binary.AppendUvarint(key, uint64(len(group)))
		key = append(key, group...)
	}
	return key
}
