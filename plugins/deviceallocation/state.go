package deviceallocation

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

const stateKey fwk.StateKey = Name

// state is what one scheduling attempt of a pod knows. PreFilter writes it,
// the parallel Filter calls add the solutions of their nodes.
type state struct {
	// allocated are the claims that have devices, pending those that need some,
	// in the order of the pod.
	allocated []*allocatedClaim
	pending   []*resourceapi.ResourceClaim
	// joined are the claims that other pods of the group have devices for.
	joined []*joinedClaim
	// consumers are those that the claims get reserved for.
	consumers consumers
	// extended is set when device classes back extended resources of the pod.
	extended *extendedState

	// attempt numbers the attempt; options are those of all its searches, and
	// avoided numbers the set of devices that they avoid.
	attempt verdict.Attempt
	options allocator.Options
	avoided uint64
	devices *inventory.Snapshot
	holders *ledger.Snapshot

	// variants has what has to be allocated.
	variants variants
	// found is what Reserve made of the verdict for a node, by node name.
	found map[string]*found
	// leftOut is set when PreFilter named the nodes worth looking at.
	leftOut *reachable
	mutex   sync.Mutex
	// failure names a device for which a selector failed; guarded by the mutex.
	failure string

	// reservation is what Reserve did, nil before.
	reservation *reservation
}

// Clone returns the state itself: attempts to preempt pods look at the same
// devices, and what Filter adds for a node is the same in each of them.
func (s *state) Clone() fwk.StateData { return s }

// allocatedClaim is a claim whose devices have been chosen before.
type allocatedClaim struct {
	claim *resourceapi.ResourceClaim
	// nodes is nil if the devices can be used from everywhere.
	nodes *nodeaffinity.NodeSelector
	// needsSkippedOperations says that only some nodes can use the devices.
	needsSkippedOperations bool
	// blocked says why no further pod may use the allocation, or is empty.
	blocked string
	// unreachable counts the nodes that the allocation rules out.
	unreachable atomic.Int64
}

// found is what Filter found for a node. It is made once: other pods of a group
// may have seen the allocations.
type found struct {
	variant *variant
	// allocations are for the claims of the variant.
	allocations []resourceapi.AllocationResult
}

// read returns the state of an attempt, or nil if the plugin has nothing to do
// for the pod.
func readState(cycle fwk.CycleState) (*state, error) {
	data, err := cycle.Read(stateKey)
	if errors.Is(err, fwk.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return data.(*state), nil
}

// note keeps the failure to be reported: the first in the order of texts, so
// that the order in which nodes are looked at does not matter.
func (s *state) note(failure string) {
	if failure == "" {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.failure == "" || failure < s.failure {
		s.failure = failure
	}
}

// needsDevices tells whether anything has to be allocated anywhere.
func (s *state) needsDevices() bool { return len(s.pending) > 0 || s.extended != nil }

// reservation is what Reserve entered in ledger and tracker for one node.
type reservation struct {
	node   string
	claims []reservedClaim
	// group is the pod's PodGroup, whose pods share the claims; it may be empty.
	group types.NamespacedName
	// mappings belong to the last claim if that is for extended resources.
	mappings []corev1.ContainerExtendedResourceRequest
	// written are the claims as PreBind wrote them.
	written []writtenClaim
	// doubtful says that a roll-back failed: the API server may have claims with
	// these devices although the attempt is over.
	doubtful bool
	// created is the claim made for extended resources in PreBind, or nil.
	created *resourceapi.ResourceClaim
	// left says that the attempt has given up its part in the allocations in flight.
	left bool
}

type reservedClaim struct {
	claim      *resourceapi.ResourceClaim
	allocation *resourceapi.AllocationResult
	extended   bool
}

type writtenClaim struct {
	claim *resourceapi.ResourceClaim
	// tied says that the allocation goes with the last reservation.
	tied bool
	// shared says that it is reserved for the pod's group.
	shared bool
}

// unavailable picks the allocated claim that PostFilter should release: one
// that keeps the pod from running, the one that rules out most nodes first, or
// one that an earlier attempt has reserved for this pod, which cannot run now
// and must not hold devices that others could use. No other pod may have
// reserved it. It returns nil if there is none.
func (s *state) unavailable(pod *corev1.Pod) *allocatedClaim {
	var worst *allocatedClaim
	for _, c := range s.allocated {
		idle := c.blocked == "" && c.unreachable.Load() == 0 && len(c.claim.Status.ReservedFor) == 0
		if idle || reservedForOthers(c.claim, pod.UID) {
			continue
		}
		if worst == nil || c.worse(worst) {
			worst = c
		}
	}
	return worst
}

// worse compares how much two claims keep a pod from running.
func (c *allocatedClaim) worse(other *allocatedClaim) bool {
	if (c.blocked == "") != (other.blocked == "") {
		return c.blocked != ""
	}
	return c.unreachable.Load() > other.unreachable.Load()
}

func reservedForOthers(claim *resourceapi.ResourceClaim, consumer types.UID) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
		return c.UID != consumer
	})
}
