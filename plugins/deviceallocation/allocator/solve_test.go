package allocator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const (
	isLarge  = `device.attributes["gpu.example.com"].model == "large"`
	isSmall  = `device.attributes["gpu.example.com"].model == "small"`
	noDevice = `device.driver == "none.example.com"`
)

// bySize offers a large GPU first and then small ones.
func bySize(n int) *builders.SliceBuilder {
	return gpus(n, func(i int, d *builders.DeviceBuilder) {
		if i == 0 {
			d.Attribute("model", "large").Capacity("memory", "80Gi")
		} else {
			d.Attribute("model", "small").Capacity("memory", "16Gi")
		}
	})
}

func onNUMA(nodes ...int) func(int, *builders.DeviceBuilder) {
	return func(i int, d *builders.DeviceBuilder) { d.Attribute(numaAttribute, nodes[i]) }
}

func tainted(names ...int) func(int, *builders.DeviceBuilder) {
	return func(i int, d *builders.DeviceBuilder) {
		for _, name := range names {
			if i == name {
				d.Taint("broken", resourceapi.DeviceTaintEffectNoSchedule)
			}
		}
	}
}

func TestSolveTakes(t *testing.T) {
	large := func(name string) *builders.RequestBuilder { return builders.Request(name, "gpu").Select(isLarge) }
	small := func(name string) *builders.RequestBuilder { return builders.Request(name, "gpu").Select(isSmall) }
	cases := map[string]struct {
		cluster *cluster
		options allocator.Options
		want    []string
		left    int
	}{
		"nothing for nothing": {
			cluster: newCluster(slicesOf(gpus(1, nil)), builders.Claim("claim")),
		},
		"the first devices without an objective": {
			cluster: newCluster(slicesOf(bySize(3)), builders.Claim("claim", builders.Request("gpu", "gpu").Count(2))),
			want:    []string{"claim gpu: gpu-0 gpu-1"},
			left:    1,
		},
		"the small device for a small need": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.Request("gpu", "gpu"))),
			options: allocator.Options{Objective: objective.BestFit{}},
			want:    []string{"claim gpu: gpu-1"},
			left:    1,
		},
		"the large device when the small ones are in use": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.Request("gpu", "gpu"))).inUse(gpuDriver, "gpus", "gpu-1"),
			options: allocator.Options{Objective: objective.BestFit{}},
			want:    []string{"claim gpu: gpu-0"},
		},
		"what the user prefers, at any cost": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.FirstAvailable("gpu", large("large"), small("small")))),
			options: allocator.Options{Objective: objective.BestFit{}},
			want:    []string{"claim gpu/large: gpu-0"},
			left:    0,
		},
		"the second choice where the first is gone": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.FirstAvailable("gpu", large("large"), small("small")))).inUse(gpuDriver, "gpus", "gpu-0"),
			want:    []string{"claim gpu/small: gpu-1"},
		},
		"the better rank for the earlier request": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim",
				builders.FirstAvailable("a", large("large"), small("small")), builders.FirstAvailable("b", large("large"), small("small")))),
			options: allocator.Options{Objective: objective.BestFit{}},
			want:    []string{"claim a/large: gpu-0", "claim b/small: gpu-1"},
		},
		"another device so that a later request gets its own": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.Request("any", "gpu"), large("large"))),
			want:    []string{"claim any: gpu-1", "claim large: gpu-0"},
		},
		"devices with a common attribute": {
			cluster: newCluster(slicesOf(gpus(4, onNUMA(0, 1, 0, 1))), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(2)).MatchAttribute(numaAttribute)).inUse(gpuDriver, "gpus", "gpu-0"),
			want: []string{"claim gpu: gpu-1 gpu-3"},
			left: 1,
		},
		"devices of two drivers with a common attribute": {
			cluster: newCluster(slicesOf(gpus(2, onNUMA(0, 1)), nics(1, onNUMA(1))), builders.Claim("claim",
				builders.Request("gpu", "gpu"), builders.Request("nic", "nic")).MatchAttribute(numaAttribute)),
			want: []string{"claim gpu: gpu-1", "claim nic: nic-0"},
			left: 1,
		},
		"only the requests that a constraint names": {
			cluster: newCluster(slicesOf(gpus(2, onNUMA(0, 1)), nics(1, onNUMA(1))), builders.Claim("claim",
				builders.Request("gpu", "gpu"), builders.Request("nic", "nic")).MatchAttribute(numaAttribute, "nic")),
			want: []string{"claim gpu: gpu-0", "claim nic: nic-0"},
			left: 1,
		},
		"devices with different attributes": {
			cluster: newCluster(slicesOf(gpus(3, onNUMA(0, 0, 1))), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(2)).DistinctAttribute(numaAttribute)),
			want: []string{"claim gpu: gpu-0 gpu-2"},
			left: 1,
		},
		"each claim for itself as far as constraints go": {
			cluster: newCluster(slicesOf(gpus(2, onNUMA(0, 1))),
				builders.Claim("a", builders.Request("gpu", "gpu")).MatchAttribute(numaAttribute),
				builders.Claim("b", builders.Request("gpu", "gpu")).MatchAttribute(numaAttribute)),
			want: []string{"a gpu: gpu-0", "b gpu: gpu-1"},
		},
		"all devices": {
			cluster: newCluster(slicesOf(gpus(3, nil), nics(1, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All())),
			want:    []string{"claim gpu: gpu-0 gpu-1 gpu-2"},
		},
		"a device in use for an administrator": {
			cluster: newCluster(slicesOf(gpus(1, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").Admin())).inUse(gpuDriver, "gpus", "gpu-0"),
			want:    []string{"claim gpu: gpu-0"},
		},
		"all devices for an administrator, in use or not": {
			cluster: newCluster(slicesOf(gpus(2, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All().Admin())).inUse(gpuDriver, "gpus", "gpu-0"),
			want:    []string{"claim gpu: gpu-0 gpu-1"},
		},
		"the device of another claim of the pod for an administrator": {
			cluster: newCluster(slicesOf(gpus(1, nil)), builders.Claim("a", builders.Request("gpu", "gpu")), builders.Claim("b", builders.Request("gpu", "gpu").Admin())),
			want:    []string{"a gpu: gpu-0", "b gpu: gpu-0"},
		},
		"the other device so that an administrator of the same claim gets this one": {
			cluster: newCluster(slicesOf(bySize(2)), builders.Claim("a", builders.Request("gpu", "gpu")),
				builders.Claim("b", builders.Request("gpu", "gpu"), small("watch").Admin())),
			want: []string{"a gpu: gpu-1", "b gpu: gpu-0", "b watch: gpu-1"},
		},
		"a tainted device for who tolerates it": {
			cluster: newCluster(slicesOf(gpus(2, tainted(0))), builders.Claim("claim", builders.Request("gpu", "gpu").Tolerate("broken"))),
			want:    []string{"claim gpu: gpu-0"},
			left:    1,
		},
		"no tainted device for who does not": {
			cluster: newCluster(slicesOf(gpus(2, tainted(0))), builders.Claim("claim", builders.Request("gpu", "gpu"))),
			want:    []string{"claim gpu: gpu-1"},
		},
		"a device with a taint that forbids nothing": {
			cluster: newCluster(slicesOf(gpus(1, func(_ int, d *builders.DeviceBuilder) {
				d.Taint("note", resourceapi.DeviceTaintEffectNone).Taint("future", "Unknown")
			})), builders.Claim("claim", builders.Request("gpu", "gpu"))),
			want: []string{"claim gpu: gpu-0"},
		},
		"32 devices for a claim, and more for the next one": {
			cluster: newCluster(slicesOf(gpus(33, nil)), builders.Claim("a", builders.Request("gpu", "gpu").Count(32)), builders.Claim("b", builders.Request("gpu", "gpu"))),
			want:    []string{"a gpu:" + names(0, 32), "b gpu: gpu-32"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, s, err := tc.cluster.solve(t, tc.options)
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(tc.want, placement(p, s)); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
			if s.Left != tc.left {
				t.Errorf("%d devices left, want %d", s.Left, tc.left)
			}
			if s.Exhausted {
				t.Error("exhausted without a budget")
			}
		})
	}
}

func names(from, to int) string {
	var text strings.Builder
	for _, d := range builders.DevicesNamed("gpu", to, nil)[from:] {
		text.WriteString(" " + d.Obj().Name)
	}
	return text.String()
}

func TestSolveRejects(t *testing.T) {
	gpu := builders.Request("gpu", "gpu")
	two := builders.Claim("claim", builders.Request("gpu", "gpu").Count(2))
	cases := map[string]struct {
		cluster     *cluster
		cause       allocator.Cause
		alternative int
		attribute   resourceapi.FullyQualifiedName
		tally       allocator.Tally
	}{
		"no device": {
			cluster: newCluster(nil, builders.Claim("claim", gpu)),
			cause:   allocator.NoDevice,
			tally:   allocator.Tally{Wanted: 1},
		},
		"a pool of another node": {
			cluster: newCluster(slicesOf(builders.Slice(gpuDriver, "p").OnNode("node-2").Devices(builders.Device("d"))), builders.Claim("claim", gpu)),
			cause:   allocator.NoDevice,
			tally:   allocator.Tally{Wanted: 1},
		},
		"no match": {
			cluster: newCluster(slicesOf(gpus(2, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").Select("true", noDevice))),
			cause:   allocator.NoMatch,
			tally:   allocator.Tally{Wanted: 1, Seen: 2, Selector: 2},
		},
		"in use": {
			cluster: newCluster(slicesOf(gpus(2, nil)), two).inUse(gpuDriver, "gpus", "gpu-0", "gpu-1"),
			cause:   allocator.InUse,
			tally:   allocator.Tally{Wanted: 2, Seen: 2, Matching: 2, InUse: 2},
		},
		"tainted": {
			cluster: newCluster(slicesOf(gpus(3, tainted(1, 2))), two).inUse(gpuDriver, "gpus", "gpu-0"),
			cause:   allocator.Tainted,
			tally: allocator.Tally{Wanted: 2, Seen: 3, Matching: 3, InUse: 1, Tainted: 2,
				Taint: &resourceapi.DeviceTaint{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}},
		},
		"refused": {
			cluster: newCluster(slicesOf(gpus(1, func(_ int, d *builders.DeviceBuilder) {
				d.With(func(d *resourceapi.Device) {
					d.BindingConditions, d.BindingFailureConditions = []string{"attached"}, []string{"failed"}
				})
			})), builders.Claim("claim", gpu)),
			cause: allocator.Refused,
			tally: allocator.Tally{Wanted: 1, Seen: 1, Matching: 1, Refused: 1, Feature: device.BindingConditions},
		},
		"attribute missing": {
			cluster:   newCluster(slicesOf(gpus(2, nil)), builders.Claim("claim", gpu).MatchAttribute(numaAttribute)),
			cause:     allocator.AttributeMissing,
			attribute: numaAttribute,
			tally:     allocator.Tally{Wanted: 1, Seen: 2, Matching: 2, WithoutAttribute: 2},
		},
		"too few": {
			cluster: newCluster(slicesOf(gpus(2, nil)), two).inUse(gpuDriver, "gpus", "gpu-0"),
			cause:   allocator.TooFew,
			tally:   allocator.Tally{Wanted: 2, Seen: 2, Matching: 2, InUse: 1},
		},
		"too many of all": {
			cluster: newCluster(slicesOf(gpus(33, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All())),
			cause:   allocator.TooMany,
			tally:   allocator.Tally{Wanted: 33, Seen: 33, Matching: 33},
		},
		"too many of all and one": {
			cluster: newCluster(slicesOf(gpus(32, nil), nics(1, nil)), builders.Claim("claim",
				builders.Request("gpu", "gpu").All(), builders.Request("nic", "nic"))),
			cause:       allocator.TooMany,
			alternative: -1,
		},
		"all without any": {
			cluster: newCluster(slicesOf(nics(1, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All())),
			cause:   allocator.NoMatch,
			tally:   allocator.Tally{Wanted: 1, Seen: 1},
		},
		"all with one in use": {
			cluster: newCluster(slicesOf(gpus(2, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").All())).inUse(gpuDriver, "gpus", "gpu-0"),
			cause:   allocator.TooFew,
			tally:   allocator.Tally{Wanted: 2, Seen: 2, Matching: 2, InUse: 1},
		},
		"all while a pool is incomplete": {
			cluster: newCluster(slicesOf(gpus(2, nil), builders.Slice(nicDriver, "nics").OnNode(nodeName).SliceCount(2)),
				builders.Claim("claim", builders.Request("gpu", "gpu").All())),
			cause: allocator.PoolFault,
			tally: allocator.Tally{Seen: 2, Matching: 2},
		},
		"no common value": {
			cluster: newCluster(slicesOf(gpus(4, onNUMA(0, 0, 1, 1))), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(3)).MatchAttribute(numaAttribute)),
			cause:       allocator.NoCommonValue,
			alternative: -1,
			attribute:   numaAttribute,
		},
		"too few values": {
			cluster: newCluster(slicesOf(gpus(4, onNUMA(0, 0, 1, 1))), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(3)).DistinctAttribute(numaAttribute)),
			cause:       allocator.TooFewValues,
			alternative: -1,
			attribute:   numaAttribute,
		},
		"too few together": {
			cluster:     newCluster(slicesOf(gpus(2, nil)), two, builders.Claim("other", gpu)),
			cause:       allocator.TooFewTogether,
			alternative: -1,
		},
		"the same device twice in an administrator's claim": {
			cluster: newCluster(slicesOf(gpus(1, nil)), builders.Claim("claim",
				builders.Request("a", "gpu").Admin(), builders.Request("b", "gpu").Admin())),
			cause:       allocator.NoCombination,
			alternative: -1,
		},
		"an ordinary request after an administrator's for the same device": {
			cluster: newCluster(slicesOf(gpus(1, nil)),
				builders.Claim("a", builders.Request("gpu", "gpu").Admin()), builders.Claim("b", gpu)),
			cause:       allocator.NoCombination,
			alternative: -1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, s, err := tc.cluster.solve(t, allocator.Options{})
			var got *allocator.Rejection
			if !errors.As(err, &got) {
				t.Fatalf("solution %v, error %v, want a rejection", placement(p, s), err)
			}
			if got.Cause != tc.cause || got.Alternative != tc.alternative || got.Attribute != tc.attribute {
				t.Errorf("cause %d, alternative %d, attribute %q, want %d, %d, %q",
					got.Cause, got.Alternative, got.Attribute, tc.cause, tc.alternative, tc.attribute)
			}
			if diff := cmp.Diff(tc.tally, got.Tally); diff != "" {
				t.Errorf("tally (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSolveRejectsAllAlternatives(t *testing.T) {
	c := newCluster(slicesOf(bySize(2)), builders.Claim("claim", builders.FirstAvailable("gpu",
		builders.Request("large", "gpu").Select(isLarge), builders.Request("none", "gpu").Select(noDevice)))).inUse(gpuDriver, "gpus", "gpu-0")
	_, _, err := c.solve(t, allocator.Options{})
	var rejection *allocator.Rejection
	if !errors.As(err, &rejection) || rejection.Cause != allocator.NoAlternative {
		t.Fatalf("error %v, want a rejection because no alternative is possible", err)
	}
	var causes []allocator.Cause
	for _, r := range rejection.Alternatives {
		causes = append(causes, r.Cause)
	}
	if diff := cmp.Diff([]allocator.Cause{allocator.InUse, allocator.NoMatch}, causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// needsBudget has a cheap solution that is not the first one found.
func needsBudget() *cluster {
	return newCluster(slicesOf(gpus(12, func(i int, d *builders.DeviceBuilder) {
		d.Attribute(numaAttribute, i%2).Attribute(serialNumber, string(rune('a'+i/3)))
	})), builders.Claim("claim", builders.Request("gpu", "gpu").Count(3)).MatchAttribute(numaAttribute).DistinctAttribute(serialNumber))
}

// alternating prices make the devices that look cheap at first a bad choice.
var alternating = costs(func(_ *problem.Alternative, d *device.Device) int64 {
	return int64(d.Index*d.Index%7 + d.Index%2*3)
})

func TestSolveEndsWithItsBudget(t *testing.T) {
	_, best, err := needsBudget().solve(t, allocator.Options{Objective: alternating})
	if err != nil {
		t.Fatal(err)
	}
	incumbents, undecided := 0, 0
	for budget := 1; budget < best.Steps; budget++ {
		_, s, err := needsBudget().solve(t, allocator.Options{Objective: alternating, StepBudget: budget})
		var rejection *allocator.Rejection
		switch {
		case err == nil:
			incumbents++
			if !s.Exhausted || s.Cost < best.Cost || len(s.Claims[0]) != 3 {
				t.Errorf("budget %d: %+v, want an exhausted search with a solution", budget, s)
			}
		case errors.As(err, &rejection) && rejection.Cause == allocator.OutOfBudget:
			undecided++
		default:
			t.Errorf("budget %d: %v", budget, err)
		}
	}
	if undecided < 2 || incumbents < 1 {
		t.Errorf("%d budgets without and %d with a solution: the case tests nothing", undecided, incumbents)
	}
	_, s, err := needsBudget().solve(t, allocator.Options{Objective: alternating, StepBudget: best.Steps})
	if err != nil || s.Exhausted || s.Cost != best.Cost {
		t.Errorf("with just enough budget: %+v, %v", s, err)
	}
}

func TestSolveStopsWithItsContext(t *testing.T) {
	stop := errors.New("enough nodes found")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	c := newCluster(slicesOf(gpus(1, nil)), builders.Claim("claim", builders.Request("gpu", "gpu")))
	if s, err := allocator.Solve(ctx, c.problem(t), c.view(), allocator.Options{}); !errors.Is(err, stop) {
		t.Errorf("solution %v, error %v, want the context's cause", s, err)
	}
}

func TestSolveLeavesItsInputAlone(t *testing.T) {
	for seed := range uint64(50) {
		c, untouched := randomCluster(seed, large), randomCluster(seed, large)
		for _, options := range []allocator.Options{{}, {Objective: objective.BestFit{}, StepBudget: 1000}} {
			p, s, err := c.solve(t, options)
			again, sAgain, errAgain := c.solve(t, options)
			if diff := cmp.Diff(placement(p, s), placement(again, sAgain)); diff != "" || (err == nil) != (errAgain == nil) {
				t.Errorf("seed %d: the second answer differs: %s", seed, diff)
			}
		}
		if diff := cmp.Diff(untouched, c, cmp.AllowUnexported(cluster{})); diff != "" {
			t.Fatalf("seed %d: input changed (-before +after):\n%s", seed, diff)
		}
	}
}

func TestSolveWithFailingSelectors(t *testing.T) {
	isReady := `device.attributes["example.com"].ready`
	ready := func(which ...int) func(int, *builders.DeviceBuilder) {
		return func(i int, d *builders.DeviceBuilder) {
			for _, w := range which {
				if w == i {
					d.Attribute("example.com/ready", true)
				}
			}
		}
	}
	one := builders.Claim("claim", builders.Request("gpu", "gpu").Select(isReady))
	cases := map[string]struct {
		cluster *cluster
		want    []string
		fails   string // device, when selector errors are fatal
	}{
		"odd device after the one taken":  {newCluster(slicesOf(gpus(2, ready(0))), one), []string{"claim gpu: gpu-0"}, ""},
		"odd device before the one taken": {newCluster(slicesOf(gpus(2, ready(1))), one), []string{"claim gpu: gpu-1"}, "gpu-0"},
		"odd device in use": {
			newCluster(slicesOf(gpus(2, ready(1))), one).inUse(gpuDriver, "gpus", "gpu-0"), []string{"claim gpu: gpu-1"}, ""},
		"odd devices only": {newCluster(slicesOf(gpus(2, nil)), one), nil, "gpu-0"},
		"all devices": {newCluster(slicesOf(gpus(2, ready(0))), builders.Claim("claim", builders.Request("gpu", "gpu").All().Select(isReady))),
			[]string{"claim gpu: gpu-0"}, "gpu-1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, s, err := tc.cluster.solve(t, allocator.Options{})
			if diff := cmp.Diff(tc.want, placement(p, s)); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
			var rejection *allocator.Rejection
			if tc.want == nil && (!errors.As(err, &rejection) || rejection.Tally.Errors != 2 || rejection.Tally.Failed == nil) {
				t.Errorf("error %v, want a rejection that counts the errors", err)
			}
			_, _, err = tc.cluster.solve(t, allocator.Options{FailOnSelectorError: true})
			var failed *allocator.SelectorError
			switch {
			case tc.fails == "" && err != nil:
				t.Errorf("fails on %v", err)
			case tc.fails != "" && (!errors.As(err, &failed) || failed.Device.ID.Device.Value() != tc.fails):
				t.Errorf("error %v, want one of device %s", err, tc.fails)
			}
		})
	}
}
