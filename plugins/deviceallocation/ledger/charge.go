package ledger

import (
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
)

// charge works out what all held devices consume of counters.
func (u *PoolUsage) charge(counters *inventory.Counters) (drawn []int64, groups []inventory.Compatibility) {
	return make([]int64, counters.Len()), make([]inventory.Compatibility, counters.Sets())
}
