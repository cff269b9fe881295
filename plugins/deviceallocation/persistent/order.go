package persistent

import (
	"strings"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Strings is the Order of keys such as node names.
func Strings() Order[string] {
	return Order[string]{
		Hash:    func(key string) uint32 { return hash(offset, key) },
		Compare: strings.Compare,
	}
}

// Pools is the Order of pool IDs.
func Pools() Order[device.PoolID] {
	return Order[device.PoolID]{
		Hash: func(id device.PoolID) uint32 {
			return hash(hash(offset, id.Driver.Value()), id.Pool.Value())
		},
		Compare: device.PoolID.Compare,
	}
}

// offset and prime are those of the 32 bit FNV-1a hash. It is written out here
// because hash/fnv allocates.
const (
	offset uint32 = 2166136261
	prime  uint32 = 16777619
)

func hash(sum uint32, text string) uint32 {
	for i := range len(text) {
		sum = (sum ^ uint32(text[i])) * prime
	}
	// The low bits choose the leaf: mix the high ones in.
	return sum ^ sum>>15
}
