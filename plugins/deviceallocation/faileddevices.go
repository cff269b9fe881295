package deviceallocation

import (
	"maps"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
)

// failedDevices remembers which devices did not get ready for a pod. What the
// driver reported about them goes with the allocation, and without any memory
// the next attempt would find the very same devices the best ones again:
//
//	attempt 1   takes gpu-0   it cannot be attached   gives it back
//	attempt 2   takes gpu-0   ...
//
// while another one is free. A good driver taints such a device or withdraws it;
// until then others are preferred. It is a preference and nothing more: if there
// is no other device, the pod gets the same one once more, as it does after a
// restart of the scheduler. In kube-scheduler's own order of devices (strategy
// None) it has no effect. It is safe for concurrent use.
type failedDevices struct {
	mutex sync.Mutex
	// until says when a device is forgotten. The map is never changed, but
	// replaced.
	until map[device.ID]time.Time
	// version changes whenever the devices do.
	version uint64
}

func (f *failedDevices) add(e *bindingError, until time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	next := maps.Clone(f.until)
	if next == nil {
		next = make(map[device.ID]time.Time)
	}
	for _, d := range e.devices {
		next[d.id] = until
	}
	f.until = next
	f.version++
}

// forgive forgets the devices of an allocation, which have got ready.
func (f *failedDevices) forgive(allocation *resourceapi.AllocationResult) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.until) == 0 {
		return
	}
	next := maps.Clone(f.until)
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		delete(next, device.NewID(result.Driver, result.Pool, result.Device))
	}
	f.until = next
	f.version++
}

// now returns the devices that are remembered, nil and 0 if there are none. As
// long as the number is the same, the devices are.
func (f *failedDevices) now(now time.Time) (map[device.ID]bool, uint64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.until) == 0 {
		return nil, 0
	}
	next := maps.Clone(f.until)
	maps.DeleteFunc(next, func(_ device.ID, until time.Time) bool { return !now.Before(until) })
	if len(next) != len(f.until) {
		f.until = next
		f.version++
	}
	if len(next) == 0 {
		return nil, 0
	}
	ids := make(map[device.ID]bool, len(next))
	for id := range next {
		ids[id] = true
	}
	return ids, f.version
}

// searchOptions are those of one attempt, with the number of the set of devices
// that they avoid. All nodes must use the same ones, or their solutions could
// not be compared.
func (pl *Plugin) searchOptions() (allocator.Options, uint64) {
	options := pl.options
	if options.Objective == nil {
		return options, 0
	}
	failed, version := pl.failed.now(time.Now())
	if failed != nil {
		options.Objective = objective.Avoid{Objective: options.Objective, Devices: failed}
	}
	return options, version
}
