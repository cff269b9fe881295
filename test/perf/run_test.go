package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMeasure: who runs what, in which order.
func TestMeasure(t *testing.T) {
	burst := &Workload{Name: "burst", Sizes: map[Size]map[string]any{SizeTest: {}, SizeShort: {}, SizeFull: {}}}
	ceiling := &Workload{Name: "ceiling", Ceiling: true, Sizes: map[Size]map[string]any{SizeTest: {}, SizeShort: {}, SizeFull: {}}}
	large := &Workload{Name: "large", Sizes: map[Size]map[string]any{SizeTest: {}, SizeFull: {}, SizeRatio: {}}}
	cases := map[string]struct {
		workloads []*Workload
		size      Size
		plugins   []string
		rounds    int
		late      string // a workload/size that the stock plugin does not do in time
		want      []string
	}{
		"plugins take turns": {
			workloads: []*Workload{burst}, size: SizeShort, plugins: []string{Ours, Stock}, rounds: 3,
			want: []string{
				"1 burst/short DeviceAllocation", "1 burst/short DynamicResources",
				"2 burst/short DynamicResources", "2 burst/short DeviceAllocation",
				"3 burst/short DeviceAllocation", "3 burst/short DynamicResources",
			},
		},
		"the ceiling is ours alone": {
			workloads: []*Workload{ceiling}, size: SizeShort, plugins: []string{Ours, Stock}, rounds: 1,
			want: []string{"1 ceiling/short DeviceAllocation"},
		},
		"the ceiling is the stock plugin's when it is alone": {
			workloads: []*Workload{ceiling}, size: SizeShort, plugins: []string{Stock}, rounds: 1,
			want: []string{"1 ceiling/short DynamicResources"},
		},
		"a size that the workload does not have": {
			workloads: []*Workload{large}, size: SizeShort, plugins: []string{Ours}, rounds: 1,
			want: []string{"1 large/full DeviceAllocation"},
		},
		"what takes too long is done in a smaller size from then on": {
			workloads: []*Workload{large}, size: SizeFull, plugins: []string{Ours, Stock}, rounds: 2, late: "large/full",
			want: []string{
				"1 large/full DeviceAllocation", "1 large/full DynamicResources",
				"1 large/ratio DeviceAllocation", "1 large/ratio DynamicResources",
				"2 large/ratio DynamicResources", "2 large/ratio DeviceAllocation",
			},
		},
		"nothing smaller is left": {
			workloads: []*Workload{large}, size: SizeRatio, plugins: []string{Stock}, rounds: 1, late: "large/ratio",
			want: []string{"1 large/ratio DynamicResources"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := &Harness{Log: io.Discard, run: func(_ context.Context, _ *Harness, job Job) (*Run, error) {
				late := job.Plugin == Stock && tc.late == job.Workload.Name+"/"+string(job.Size)
				return &Run{Workload: job.Workload.Name, Size: job.Size, Plugin: job.Plugin, Round: job.Round, TooLong: late}, nil
			}}
			runs, err := h.Measure(context.Background(), tc.workloads, tc.size, tc.plugins, tc.rounds)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, run := range runs {
				got = append(got, fmt.Sprintf("%d %s/%s %s", run.Round, run.Workload, run.Size, run.Plugin))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMeasureFails: what was measured before is not lost.
func TestMeasureFails(t *testing.T) {
	w := &Workload{Name: "burst", Sizes: map[Size]map[string]any{SizeTest: {}, SizeFull: {}}}
	h := &Harness{Log: io.Discard, run: func(_ context.Context, _ *Harness, job Job) (*Run, error) {
		if job.Round == 2 {
			return nil, errors.New("no etcd")
		}
		return &Run{Workload: job.Workload.Name}, nil
	}}
	runs, err := h.Measure(context.Background(), []*Workload{w}, SizeFull, []string{Ours}, 3)
	if want := "run burst/full with DeviceAllocation: no etcd"; err == nil || err.Error() != want {
		t.Errorf("error: got %v, want %s", err, want)
	}
	if len(runs) != 1 {
		t.Errorf("%d runs are left, want 1", len(runs))
	}
}

func TestCheck(t *testing.T) {
	ours := Record{Plugins: []string{"VolumeBinding", Ours}, Searches: 10, Pods: 5}
	stock := Record{Plugins: []string{"VolumeBinding", Stock}, Pods: 5}
	cases := map[string]struct {
		plugin  string
		ceiling bool
		record  Record
		want    string
	}{
		"ours":                {plugin: Ours, record: ours},
		"stock":               {plugin: Stock, record: stock},
		"ours without claims": {plugin: Ours, ceiling: true, record: Record{Plugins: []string{Ours}, Pods: 5}},
		"the other one":       {plugin: Ours, record: stock, want: "the plugins that ran are [VolumeBinding DynamicResources]"},
		"both": {
			plugin: Stock, record: Record{Plugins: []string{Ours, Stock}, Pods: 5},
			want: "the plugins that ran are [DeviceAllocation DynamicResources]",
		},
		"nothing measured":   {plugin: Stock, record: Record{Plugins: []string{Stock}}, want: "no pod with the label measured got a node"},
		"ours did nothing":   {plugin: Ours, record: Record{Plugins: []string{Ours}, Pods: 5}, want: "our allocator has not searched"},
		"ours did something": {plugin: Stock, record: Record{Plugins: []string{Stock}, Pods: 5, Searches: 3}, want: "our allocator has searched 3 times"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := &Run{Record: tc.record}
			err := run.check(Job{Workload: &Workload{Ceiling: tc.ceiling}, Plugin: tc.plugin})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("error: got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTake(t *testing.T) {
	cases := map[string]struct {
		items string
		want  Run
	}{
		"pods alone": {
			items: `[{"data":{"Average":40.5,"Perc50":41},"labels":{"Metric":"SchedulingThroughput"}},
				{"data":{"Perc50":2,"Perc99":30},"labels":{"Metric":"scheduler_scheduling_algorithm_duration_seconds"}},
				{"data":{"Max":300},"labels":{"Metric":"heap_memory_usage"}}]`,
			want: Run{Throughput: 40.5, P50: 2, P99: 30},
		},
		"groups": {
			items: `[{"data":{"Perc50":9,"Perc99":90},"labels":{"Metric":"scheduler_podgroup_scheduling_algorithm_duration_seconds"}},
				{"data":{"Perc50":2,"Perc99":30},"labels":{"Metric":"scheduler_scheduling_algorithm_duration_seconds"}}]`,
			want: Run{P50: 9, P99: 90},
		},
		"too short for the throughput": {items: `[{"data":null,"labels":{"Metric":"not applicable"}}]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got Run
			if err := got.take([]byte(`{"version":"v1","dataItems":` + tc.items + `}`)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCount(t *testing.T) {
	var got Record
	got.count("device_scheduler_searches_total", map[string]string{"result": "found"}, 4)
	got.count("device_scheduler_searches_total", map[string]string{"result": "rejected"}, 3)
	got.count("apiserver_request_total", map[string]string{"verb": "PUT", "resource": "resourceclaims", "subresource": "status", "code": "200"}, 5)
	got.count("apiserver_request_total", map[string]string{"verb": "PUT", "resource": "resourceclaims", "subresource": "status", "code": "409"}, 1)
	got.count("apiserver_request_total", map[string]string{"verb": "POST", "resource": "pods"}, 2)
	got.count("apiserver_request_total", map[string]string{"verb": "POST", "resource": "nodes"}, 9)
	want := Record{Searches: 7, Requests: map[string]int{"PUT resourceclaims/status": 6, "POST pods": 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestTail(t *testing.T) {
	if got, want := tail("a\nb\nc\n", 2), "b\nc"; got != want {
		t.Errorf("tail: got %q, want %q", got, want)
	}
	if got := tail(strings.Repeat("a\n", 2), 5); got != "a\na" {
		t.Errorf("tail of less: got %q", got)
	}
}
