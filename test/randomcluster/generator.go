package randomcluster

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/device-scheduler/device-scheduler/test/allocationcheck"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	gpuDriver = "gpu.example.com"
	nicDriver = "nic.example.com"
	// NodeName is the node for which devices are wanted.
	NodeName  = "node-1"
	otherNode = "node-2"
	// declared is what a node declares whose kubelet can leave out calls to
	// the driver.
	declared = "DRAOptionalNodeOperations"
)

// AllFeatures returns the feature gates with everything on.
func AllFeatures() structured.Features {
	return structured.Features{
		AdminAccess: true, CompatibilityGroups: true, ConsumableCapacity: true, DerivedAttributes: true,
		DeviceBindingAndStatus: true, DeviceTaints: true, FractionalCapacityRange: true, ListTypeAttributes: true,
		OptionalNodeOperations: true, PartitionableDevices: true, PrioritizedList: true,
	}
}

// DefaultFeatures returns the feature gates of Kubernetes 1.37.
func DefaultFeatures() structured.Features {
	return structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
		FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
	}
}

// generator makes up one cluster.
type generator struct {
	*rand.Rand
	// uses are the features that the objects of this cluster use. They are
	// drawn independently of the feature gates, so that objects can be ahead of
	// the scheduler.
	uses    uses
	cluster *allocationcheck.Situation
	// serial makes names and values unique.
	serial int
	// remaining has what is left of each counter, to keep holders sound.
	remaining map[counterID]int64
	groups    map[setID][]string
	// deriving tells whether the requests of the claim derive attributes.
	deriving bool
	// derivation is how most of them do.
	derivation string
}

type uses struct {
	partitions, groups, sharing, policies, fractions, conditions, lists, derived, skips bool
	taints, prioritized, all, admin, constraints, perDevice, mixed, faults, errors      bool
}

// New makes up a cluster. The same seed gives the same cluster.
func New(seed uint64) *allocationcheck.Situation {
	g := &generator{
		Rand:      rand.New(rand.NewPCG(seed, 37)),
		remaining: make(map[counterID]int64),
		groups:    make(map[setID][]string),
	}
	g.uses = uses{
		partitions: g.chance(40), groups: g.chance(40), sharing: g.chance(45), policies: g.chance(60), fractions: g.chance(30),
		conditions: g.chance(25), lists: g.chance(30), derived: g.chance(25), skips: g.chance(15),
		taints: g.chance(40), prioritized: g.chance(35), all: g.chance(25), admin: g.chance(25), constraints: g.chance(55),
		perDevice: g.chance(35), mixed: g.chance(30), faults: g.chance(12), errors: g.chance(8),
	}
	g.cluster = &allocationcheck.Situation{Features: g.features(), Node: g.node(), Classes: classes()}
	// The older implementations of the stock allocator do not know
	// skipNodeOperations at all: they give out the devices as if it were not
	// there. The newest refuses them unless the feature is on.
	g.uses.skips = g.uses.skips && isNewest(g.cluster.Features)
	// Without the feature the stock allocator takes a list for a value of an
	// unknown type, which the first device under a constraint may have and no
	// other. No API server stores lists then.
	g.uses.lists = g.uses.lists && g.cluster.Features.ListTypeAttributes
	for pool := range 1 + g.IntN(3) {
		g.addPool(fmt.Sprintf("pool-%d", pool))
	}
	for i := range oneOf(g, 1, 1, 1, 1, 2, 2, 3) {
		g.cluster.Claims = append(g.cluster.Claims, g.claim(fmt.Sprintf("claim-%d", i)))
	}
	return g.cluster
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func oneOf[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

func (g *generator) features() structured.Features {
	switch {
	case g.chance(80):
		return AllFeatures()
	case g.chance(50):
		return DefaultFeatures()
	}
	on := func() bool { return g.chance(75) }
	return structured.Features{
		AdminAccess: on(), CompatibilityGroups: on(), ConsumableCapacity: on(), DerivedAttributes: on(),
		DeviceBindingAndStatus: on(), DeviceTaints: on(), FractionalCapacityRange: on(), ListTypeAttributes: on(),
		OptionalNodeOperations: on(), PartitionableDevices: on(), PrioritizedList: on(),
	}
}

func (g *generator) node() *corev1.Node {
	node := builders.Node(NodeName, "zone", "a", "rack", "r1")
	if g.chance(70) {
		node.Status.DeclaredFeatures = []string{declared}
	}
	return node
}

func classes() []*resourceapi.DeviceClass {
	return []*resourceapi.DeviceClass{
		builders.Class("any").Config(gpuDriver, `{"from":"class any"}`).Obj(),
		builders.Class("gpu").Select(`device.driver == "` + gpuDriver + `"`).Obj(),
		builders.Class("nic").Select(`device.driver == "`+nicDriver+`"`).
			Config(nicDriver, `{"from":"class nic"}`).Config(nicDriver, `{"second":"class nic"}`).Obj(),
		builders.Class("large").Select(`device.attributes["gpu.example.com"].?model.orValue("") == "large"`).Obj(),
	}
}
