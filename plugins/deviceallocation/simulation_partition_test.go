package deviceallocation

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const partitionDriver = "partition.example.com"

// publishPartitions writes a pool of boards, each of which can be used as a
// whole or as two halves. That restores what withhold left out.
func (s *simulation) publishPartitions(pool *simulatedPool) string {
	return s.putPartitions(pool, s.partitions(pool), "anew")
}

// withhold lets a driver publish a pool without a partition that a claim holds,
// or without what that consumes.
func (s *simulation) withhold() string {
	held := make(map[string]device.ID)
	for key := range s.charges {
		held[key.device.String()] = key.device
	}
	names := sortedNames(held)
	if len(names) == 0 || s.random.IntN(2) == 0 {
		return ""
	}
	id := held[names[s.random.IntN(len(names))]]
	name := id.Device.Value()
	pool := s.pools[slices.IndexFunc(s.pools, func(p *simulatedPool) bool {
		return p.driver == partitionDriver && p.name == id.Pool.Value()
	})]
	if pool.rest != nil {
		return ""
	}
	slice := s.partitions(pool)
	at := slices.IndexFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return d.Name == name })
	if s.random.IntN(2) == 0 {
		slice.Spec.Devices[at].ConsumesCounters = nil
		return s.putPartitions(pool, slice, "without what "+name+" consumes")
	}
	slice.Spec.Devices = slices.Delete(slice.Spec.Devices, at, at+1)
	return s.putPartitions(pool, slice, "without "+name)
}

// putPartitions writes the devices in the present generation of their pool, or
// everything in a new one.
func (s *simulation) putPartitions(pool *simulatedPool, devices *resourceapi.ResourceSlice, how string) string {
	if pool.generation > 0 && s.random.IntN(2) == 0 {
		s.putSlice(devices)
		return fmt.Sprintf("publish devices of %s %s %s", pool.driver, pool.name, how)
	}
	pool.generation++
	devices.Spec.Pool.Generation = pool.generation
	first, second := boards(pool), devices
	if s.random.IntN(2) == 0 {
		first, second = second, first
	}
	s.putSlice(first)
	if s.random.IntN(4) == 0 {
		pool.rest = second
		how += ", the other slice comes later"
	} else {
		s.putSlice(second)
	}
	return fmt.Sprintf("publish %s %s generation %d %s", pool.driver, pool.name, pool.generation, how)
}

const simulatedBoards = 2

// boards is the slice with the counters. A name always means the same amounts.
func boards(pool *simulatedPool) *resourceapi.ResourceSlice {
	b := emptySlice(pool, "boards").SliceCount(2)
	for i := range simulatedBoards {
		b.CounterSet(fmt.Sprintf("board-%d", i), map[string]string{"memory": "40Gi", "engines": "7"})
	}
	return b.Obj()
}

func (s *simulation) partitions(pool *simulatedPool) *resourceapi.ResourceSlice {
	b := emptySlice(pool, "devices").SliceCount(2)
	for i := range simulatedBoards {
		set := fmt.Sprintf("board-%d", i)
		for _, part := range []struct{ name, size, memory, engines string }{
			{"whole", "whole", "40Gi", "7"}, {"half-a", "half", "20Gi", "3"}, {"half-b", "half", "20Gi", "3"},
		} {
			d := builders.Device(set+"-"+part.name).Attribute("size", part.size).Attribute("model", []string{"a", "b"}[i])
			d.Consumes(set, map[string]string{"memory": part.memory, "engines": part.engines})
			if s.random.IntN(12) == 0 {
				d.Taint("sick", resourceapi.DeviceTaintEffectNoSchedule)
			}
			b.Devices(d)
		}
	}
	return b.Obj()
}

// ofSize selects partitions of one size.
func ofSize(size string) string {
	return fmt.Sprintf("device.attributes[%q].size == %q", partitionDriver, size)
}

func (s *simulation) partitionClaim(name string) *builders.ClaimBuilder {
	sized := func(name, size string) *builders.RequestBuilder {
		return builders.Request(name, "partition").Select(ofSize(size))
	}
	switch s.random.IntN(7) {
	case 0, 1:
		return builders.Claim(name, sized("main", "whole"))
	case 2:
		return builders.Claim(name, builders.FirstAvailable("main", sized("large", "whole"), sized("small", "half")))
	case 3:
		return builders.Claim(name, builders.Request("main", "partition").Admin())
	case 4:
		return builders.Claim(name, sized("main", "half").Count(2))
	case 5:
		return builders.Claim(name, sized("main", "half"), builders.Request("more", "partition"))
	default:
		return builders.Claim(name, sized("main", "half"))
	}
}

// slicesOfDevices leaves out slices that have none.
func (s *simulation) slicesOfDevices() []*resourceapi.ResourceSlice {
	var found []*resourceapi.ResourceSlice
	for _, slice := range s.allSlices() {
		if len(slice.Spec.Devices) > 0 {
			found = append(found, slice)
		}
	}
	return found
}
