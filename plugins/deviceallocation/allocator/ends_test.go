package allocator_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

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
