package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
)

var allPaths = []string{"p/gpu-0", "p/gpu-1", "p/gpu-2", "q/gpu-0", "q/gpu-1"}

// oracle is what exists: the claims as the API server has them and the
// reservations, from which everything is computed anew each time.
type oracle struct {
	claims   map[string]*resourceapi.ResourceClaim
	reserved map[string][]string
}

func (o *oracle) allocated(name string) (paths []string, allocated bool) {
	claim := o.claims[name]
	if claim == nil || claim.Status.Allocation == nil {
		return nil, false
	}
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.AdminAccess == nil {
			paths = append(paths, r.Pool+"/"+r.Device)
		}
	}
	return paths, true
}

func (o *oracle) held() []string {
	var lines []string
	for _, path := range allPaths {
		line := ""
		for i := range 4 {
			name := fmt.Sprint("claim-", i)
			allocated, _ := o.allocated(name)
			if slices.Contains(allocated, path) {
				line += " " + name
			} else if slices.Contains(o.reserved[name], path) {
				line += " " + name + "(reserved)"
			}
		}
		if line != "" {
			lines = append(lines, path+":"+line)
		}
	}
	return lines
}

// fits reports whether the reservation must be granted.
func (o *oracle) fits(name string, paths []string) bool {
	allocated, isAllocated := o.allocated(name)
	reserved, isReserved := o.reserved[name]
	slices.Sort(allocated)
	slices.Sort(reserved)
	switch {
	case isAllocated:
		return slices.Equal(allocated, paths)
	case isReserved:
		return slices.Equal(reserved, paths)
	}
	for _, path := range paths {
		for i := range 4 {
			other := fmt.Sprint("claim-", i)
			allocated, _ := o.allocated(other)
			if slices.Contains(allocated, path) || slices.Contains(o.reserved[other], path) {
				return false
			}
		}
	}
	return true
}

func TestRandomEventsAgainstOracle(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := New()
		o := &oracle{claims: make(map[string]*resourceapi.ResourceClaim), reserved: make(map[string][]string)}
		epochs := make(map[string]string)
		var seen []event
		for version := 1; version <= 200; version++ {
			name := fmt.Sprint("claim-", random.IntN(4))
			var paths []string
			for _, path := range allPaths {
				if random.IntN(4) == 0 {
					paths = append(paths, path)
				}
			}
			switch random.IntN(8) {
			case 0, 1, 2:
				claim := unallocated(name, version)
				if random.IntN(3) > 0 {
					for _, path := range paths {
						claim = newClaim(name, version, append(resultsOf(claim), result(path))...)
					}
				}
				o.claims[name] = claim
				if claim.Status.Allocation != nil {
					delete(o.reserved, name)
				}
				e := observe(claim)
				e(l)
				seen = append(seen, e)
			case 3:
				if len(seen) > 0 {
					seen[random.IntN(len(seen))](l)
				}
			case 4:
				delete(o.reserved, name)
				l.Unreserve(uidOf(name))
			default:
				want := o.fits(name, paths)
				err := l.Reserve(nil, []Reservation{reservation(name, paths...)})
				if (err == nil) != want {
					t.Fatalf("seed %d, version %d: reserve %v for %s: %v, want success: %v", seed, version, paths, name, err, want)
				}
				if _, allocated := o.allocated(name); want && !allocated {
					o.reserved[name] = paths
				}
			}
			if random.IntN(3) == 0 {
				continue
			}
			if diff := cmp.Diff(o.held(), held(l, allPaths...)); diff != "" {
				t.Fatalf("seed %d, version %d (-want +got):\n%s", seed, version, diff)
			}
			checkEpochs(t, l.Snapshot(nil), epochs)
		}
	}
}

func resultsOf(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}

// checkEpochs fails when one epoch of a pool stands for two contents.
func checkEpochs(t *testing.T, snapshot *Snapshot, epochs map[string]string) {
	t.Helper()
	for _, pool := range []string{"p", "q"} {
		usage := snapshot.Pool(deviceID(pool + "/").PoolID())
		content := ""
		for _, path := range allPaths {
			if id := deviceID(path); id.Pool.Value() == pool {
				content += fmt.Sprint(usage.Holders(id.Device), " ")
			}
		}
		epoch := fmt.Sprint(pool, usage.Epoch())
		if before, found := epochs[epoch]; found && before != content {
			t.Fatalf("epoch %s stands for %s and for %s", epoch, before, content)
		}
		epochs[epoch] = content
	}
}

// TestConcurrentReserve lets many claims fight for one device, under the race
// detector: whoever is told that it has it must be alone.
func TestConcurrentReserve(t *testing.T) {
	const workers, rounds = 4, 200
	l := New()
	var group sync.WaitGroup
	var mu sync.Mutex
	winners := make(map[string]int)
	for worker := range workers {
		group.Go(func() {
			name := fmt.Sprint("claim-", worker)
			for round := range rounds {
				l.Observe(unallocated(name, round+1))
				if l.Reserve(nil, []Reservation{reservation(name, "p/gpu-0", "q/gpu-0")}) != nil {
					l.Snapshot(nil)
					continue
				}
				if got := l.Holders(deviceID("p/gpu-0")); len(got) != 1 || got[0].Claim != uidOf(name) {
					t.Errorf("%s has reserved the device, but the holders are %v", name, got)
				}
				if id := deviceID("q/gpu-0"); l.Snapshot(nil).Pool(id.PoolID()).Holders(id.Device) != 1 {
					t.Errorf("%s has reserved the device, but the snapshot does not say so", name)
				}
				mu.Lock()
				winners[name]++
				mu.Unlock()
				l.Unreserve(uidOf(name))
			}
		})
	}
	group.Wait()
	if len(slices.Collect(maps.Keys(winners))) == 0 {
		t.Error("nobody ever got the device")
	}
	if got := held(l, "p/gpu-0", "q/gpu-0"); got != nil {
		t.Errorf("still held: %v", got)
	}
}
