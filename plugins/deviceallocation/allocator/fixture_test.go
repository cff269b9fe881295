package allocator_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	gpuDriver = "gpu.example.com"
	nicDriver = "nic.example.com"
	nodeName  = "node-1"
)

// compiler is shared so that each expression is compiled once for all tests.
var compiler = selector.NewCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})

// features is everything that is supported, and the one feature that is refused.
var features = func() device.Features {
	features := device.AllFeatures()
	features.NodeAllocatableResources = true
	return features
}()

// cluster is everything that decides about an allocation.
type cluster struct {
	slices  []*resourceapi.ResourceSlice
	classes []*resourceapi.DeviceClass
	// allocated claims hold devices, claims want some.
	allocated, claims []*resourceapi.ResourceClaim
	node              *corev1.Node
}

// newCluster has classes "gpu" and "nic" for the two drivers, "any" for both,
// and the given claims to be allocated.
func newCluster(slices []*builders.SliceBuilder, claims ...*builders.ClaimBuilder) *cluster {
	c := &cluster{
		classes: []*resourceapi.DeviceClass{
			builders.Class("any").Obj(),
			builders.Class("gpu").Select(`device.driver == "` + gpuDriver + `"`).Obj(),
			builders.Class("nic").Select(`device.driver == "` + nicDriver + `"`).Obj(),
		},
		node: builders.Node(nodeName, "zone", "a"),
	}
	for _, slice := range slices {
		c.slices = append(c.slices, slice.Obj())
	}
	for _, claim := range claims {
		c.claims = append(c.claims, claim.Obj())
	}
	return c
}

// inUse adds a claim that holds devices.
func (c *cluster) inUse(driver, pool string, devices ...string) *cluster {
	holder := builders.Claim(fmt.Sprintf("holder-%d", len(c.allocated))).Holding(driver, pool, devices...)
	c.allocated = append(c.allocated, holder.Obj())
	return c
}

func (c *cluster) class(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c.classes {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("class %s not found", name)
}

func (c *cluster) view() allocator.Node {
	slices, claims := inventory.New(features), ledger.New()
	for _, slice := range c.slices {
		slices.SetSlice(slice)
	}
	for _, claim := range c.allocated {
		claims.Observe(claim)
	}
	snapshot := slices.Snapshot()
	return allocator.Node{View: snapshot.Node(c.node), Usage: claims.Snapshot(snapshot)}
}

func (c *cluster) problem(t testing.TB) *problem.Problem {
	t.Helper()
	p, err := problem.Build(c.claims, problem.Source{Classes: c.class, Compiler: compiler, Features: features})
	if err != nil {
		t.Fatalf("build the problem: %v", err)
	}
	return p
}

func (c *cluster) solve(t testing.TB, options allocator.Options) (*problem.Problem, *allocator.Solution, error) {
	t.Helper()
	p := c.problem(t)
	solution, err := remembered(p, c.view(), options)
	return p, solution, err
}

// placement writes a solution down as "request: device device" per request
// with devices, in the order of the result.
func placement(p *problem.Problem, s *allocator.Solution) []string {
	if s == nil {
		return nil
	}
	var lines []string
	for c, picks := range s.Claims {
		last := -1
		for _, pick := range picks {
			if pick.Alternative != last {
				lines = append(lines, fmt.Sprintf("%s %s:", p.Claims[c].Object.Name, p.Alternatives[pick.Alternative].Name))
				last = pick.Alternative
			}
			lines[len(lines)-1] += " " + pick.Device.ID.Device.Value()
		}
	}
	return lines
}

// costs is an objective made of a function.
type costs func(alternative *problem.Alternative, d *device.Device) int64

func (c costs) DeviceCost(alternative *problem.Alternative, d *device.Device) int64 {
	return c(alternative, d)
}

// CellCost is 0.
func (c costs) CellCost(int64) int64 { return 0 }

func gpus(n int, change func(i int, d *builders.DeviceBuilder)) *builders.SliceBuilder {
	return builders.Slice(gpuDriver, "gpus").OnNode(nodeName).Devices(builders.DevicesNamed("gpu", n, change)...)
}

func nics(n int, change func(i int, d *builders.DeviceBuilder)) *builders.SliceBuilder {
	return builders.Slice(nicDriver, "nics").OnNode(nodeName).Devices(builders.DevicesNamed("nic", n, change)...)
}
