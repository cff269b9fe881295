package perf

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed workloads/*.yaml
var workloadFiles embed.FS

// Workload is one file of the folder workloads: what happens in a cluster while
// pods are scheduled. Its steps are operations of kube-scheduler's own
// scheduler_perf; the devices come from a simulated driver (see Driver).
type Workload struct {
	// Name is that of the file, without its ending.
	Name string `json:"-"`
	// Order sorts the table.
	Order int `json:"order"`
	// About says in a line what is measured.
	About string `json:"about"`
	// Ceiling marks the workload without claims that others are compared with.
	// Only our scheduler runs it.
	Ceiling bool `json:"ceiling,omitempty"`
	// Baseline names a workload that is the same without what this one adds.
	Baseline string `json:"baseline,omitempty"`
	// FeatureGates are set for API server and scheduler.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Driver says what is published for each node.
	Driver Driver `json:"driver,omitempty"`
	// Steps are given to scheduler_perf as they are.
	Steps []map[string]any `json:"steps"`
	// Sizes are the values of the parameters in the steps, by size. All but
	// SizeShort and SizeRatio must be there.
	Sizes map[Size]map[string]any `json:"sizes"`
}

// Size names one set of parameters of a workload.
type Size string

const (
	// SizeTest is small enough for a test: it shows that the workload works.
	SizeTest Size = "test"
	// SizeShort is that of the short set. A workload without it is not in the set.
	SizeShort Size = "short"
	// SizeFull is what the workload is about.
	SizeFull Size = "full"
	// SizeRatio is used instead of SizeFull when the stock plugin cannot do that
	// in time. Without it SizeShort is used.
	SizeRatio Size = "ratio"
)

// Workloads returns all workloads in the order of the table.
func Workloads() ([]*Workload, error) {
	files, err := fs.Glob(workloadFiles, "workloads/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list workloads: %w", err)
	}
	var all []*Workload
	for _, file := range files {
		content, err := workloadFiles.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read workload: %w", err)
		}
		w, err := parse(strings.TrimSuffix(path.Base(file), ".yaml"), content)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *Workload) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

func parse(name string, content []byte) (*Workload, error) {
	w := &Workload{Name: name}
	if err := yaml.UnmarshalStrict(content, w); err != nil {
		return nil, fmt.Errorf("decode workload %s: %w", name, err)
	}
	for _, size := range []Size{SizeTest, SizeFull} {
		if w.Sizes[size] == nil {
			return nil, fmt.Errorf("workload %s has no size %q", name, size)
		}
	}
	return w, nil
}

// Find returns the workloads with the names, or all of which one can be run in
// a size if there are no names.
func Find(all []*Workload, names []string, size Size) ([]*Workload, error) {
	var found []*Workload
	for _, w := range all {
		if len(names) == 0 && w.Sizes[size] != nil || slices.Contains(names, w.Name) {
			found = append(found, w)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(w *Workload) bool { return w.Name == name }) {
			return nil, fmt.Errorf("there is no workload %q: choose from %s", name, strings.Join(namesOf(all), ", "))
		}
	}
	return found, nil
}

func namesOf(workloads []*Workload) []string {
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = w.Name
	}
	return names
}

// nearest returns the size that is run when one is asked for: the workload may
// not have it.
func (w *Workload) nearest(size Size) Size {
	if w.Sizes[size] != nil {
		return size
	}
	return SizeFull
}

// smaller returns the size that gives the ratio when the stock plugin cannot
// do the given one in time, or "" if there is none.
func (w *Workload) smaller(size Size) Size {
	order := []Size{SizeFull, SizeRatio, SizeShort, SizeTest}
	for _, other := range order[slices.Index(order, size)+1:] {
		if w.Sizes[other] != nil && other != SizeTest {
			return other
		}
	}
	return ""
}

// testCases writes the workload in one size as scheduler_perf reads it.
// schedulerConfig is a file, or empty for kube-scheduler's defaults. on names
// the feature gates that the scheduler turns on by itself; the workload may turn
// them off.
func (w *Workload) testCases(size Size, schedulerConfig string, on []string) ([]byte, error) {
	gates := map[string]bool{"DynamicResourceAllocation": true}
	for _, gate := range on {
		gates[gate] = true
	}
	maps.Copy(gates, w.FeatureGates)
	testCase := map[string]any{
		"name":             w.Name,
		"featureGates":     gates,
		"workloadTemplate": w.Steps,
		"workloads":        []any{map[string]any{"name": string(size), "labels": []string{"performance"}, "params": w.Sizes[size]}},
		"metricsCollectorConfig": map[string]any{"metrics": map[string]any{
			metricAlgorithm:      nil,
			metricGroupAlgorithm: nil,
		}},
	}
	if schedulerConfig != "" {
		testCase["schedulerConfigPath"] = schedulerConfig
	}
	out, err := yaml.Marshal([]any{testCase})
	if err != nil {
		return nil, fmt.Errorf("encode workload %s: %w", w.Name, err)
	}
	return out, nil
}

// The metrics of kube-scheduler that are read.
const (
	metricAlgorithm      = "scheduler_scheduling_algorithm_duration_seconds"
	metricGroupAlgorithm = "scheduler_podgroup_scheduling_algorithm_duration_seconds"
	metricThroughput     = "SchedulingThroughput"
)
