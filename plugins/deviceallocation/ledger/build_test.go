package ledger

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

const driver = "gpu.example.com"

// newClaim returns a claim, seen at a version, with the given devices allocated.
func newClaim(name string, version int, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	claim := unallocated(name, version)
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}
	return claim
}

func unallocated(name string, version int) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: uidOf(name), ResourceVersion: fmt.Sprint(version),
	}}
}

func uidOf(name string) types.UID { return types.UID("uid of " + name) }

// recreated gives a claim another UID.
func recreated(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	claim.UID = "new " + claim.UID
	return claim
}

// result allocates "pool/device".
func result(path string) resourceapi.DeviceRequestAllocationResult {
	pool, name, _ := strings.Cut(path, "/")
	return resourceapi.DeviceRequestAllocationResult{Request: "gpu", Driver: driver, Pool: pool, Device: name}
}

func adminResult(path string) resourceapi.DeviceRequestAllocationResult {
	r := result(path)
	r.AdminAccess = new(true)
	return r
}

func shareResult(path string, id types.UID, memory string) resourceapi.DeviceRequestAllocationResult {
	r := result(path)
	r.ShareID = &id
	r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}
	return r
}

func deviceID(path string) device.ID {
	pool, name, _ := strings.Cut(path, "/")
	return device.NewID(driver, pool, name)
}

func reservation(name string, paths ...string) Reservation {
	r := Reservation{Claim: uidOf(name), Name: types.NamespacedName{Namespace: "default", Name: name}, Allocation: &resourceapi.AllocationResult{}}
	for _, path := range paths {
		r.Allocation.Devices.Results = append(r.Allocation.Devices.Results, result(path))
	}
	return r
}

// held has a line for each of the devices that is held, with all its holders,
// and checks that snapshot and holders agree.
func held(l *Ledger, paths ...string) []string {
	snapshot := l.Snapshot(nil)
	var lines []string
	for _, path := range paths {
		id := deviceID(path)
		holders := l.Holders(id)
		usage := snapshot.Pool(id.PoolID())
		if usage.Held(id.Device) != (len(holders) > 0) || usage.Holders(id.Device) != len(holders) {
			lines = append(lines, fmt.Sprintf("%s: the snapshot has %d holders, the ledger %v", path, usage.Holders(id.Device), holders))
		}
		if len(holders) == 0 {
			continue
		}
		line := path + ":"
		for _, holder := range holders {
			line += " " + strings.TrimPrefix(string(holder.Claim), "uid of ")
			if holder.Reserved {
				line += "(reserved)"
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// event changes a Ledger.
type event func(*Ledger)

func observe(claim *resourceapi.ResourceClaim) event { return func(l *Ledger) { l.Observe(claim) } }

func forget(claim *resourceapi.ResourceClaim) event { return func(l *Ledger) { l.Forget(claim) } }

// permutations visits each order of the events.
func permutations(events []event, visit func(order []int, events []event)) {
	order := make([]int, 0, len(events))
	permuted := make([]event, 0, len(events))
	var next func()
	next = func() {
		if len(order) == len(events) {
			visit(order, permuted)
			return
		}
		for i, e := range events {
			if slices.Contains(order, i) {
				continue
			}
			order, permuted = append(order, i), append(permuted, e)
			next()
			order, permuted = order[:len(order)-1], permuted[:len(permuted)-1]
		}
	}
	next()
}
