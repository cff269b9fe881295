package perf

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestWorkloads: what is shipped can be read, and names files that exist.
func TestWorkloads(t *testing.T) {
	workloads, err := Workloads()
	if err != nil {
		t.Fatal(err)
	}
	names := namesOf(workloads)
	if !slices.IsSortedFunc(workloads, func(a, b *Workload) int { return a.Order - b.Order }) {
		t.Errorf("not in the order of the table: %v", names)
	}
	used := make(map[string]bool)
	for _, w := range workloads {
		t.Run(w.Name, func(t *testing.T) {
			if w.About == "" {
				t.Error("the file does not say what it is about")
			}
			if w.Baseline != "" && !slices.Contains(names, w.Baseline) {
				t.Errorf("its baseline %s does not exist", w.Baseline)
			}
			used[w.Driver.Held], used[w.Driver.Pods] = true, true
			for _, file := range w.Driver.Slices {
				used[file] = true
				if _, err := render[resourceapi.ResourceSlice](file, at{Node: "node-0", Generation: 1}); err != nil {
					t.Error(err)
				}
			}
			for _, step := range w.Steps {
				for _, key := range []string{"templatePath", "podTemplatePath", "nodeTemplatePath"} {
					if file, ok := step[key].(string); ok {
						used[strings.TrimPrefix(file, "objects/")] = true
						if _, err := fs.Stat(objectFiles, file); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	files, err := fs.Glob(objectFiles, "objects/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !used[strings.TrimPrefix(file, "objects/")] {
			t.Errorf("no workload uses %s", file)
		}
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct{ content, want string }{
		"good":          {content: "sizes: {test: {}, full: {}}"},
		"no full size":  {content: "sizes: {test: {}}", want: `workload w has no size "full"`},
		"unknown field": {content: "size: {}", want: `decode workload w: error unmarshaling JSON: while decoding JSON: json: unknown field "size"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parse("w", []byte(tc.content))
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

func TestFind(t *testing.T) {
	short := &Workload{Name: "a", Sizes: map[Size]map[string]any{SizeShort: {}}}
	long := &Workload{Name: "b", Sizes: map[Size]map[string]any{SizeFull: {}}}
	cases := map[string]struct {
		names []string
		want  string
	}{
		"the set":          {want: "a"},
		"by name":          {names: []string{"b", "a"}, want: "a,b"},
		"not in the set":   {names: []string{"b"}, want: "b"},
		"one that is none": {names: []string{"a", "c"}, want: `there is no workload "c": choose from a, b`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, err := Find([]*Workload{short, long}, tc.names, SizeShort)
			got := strings.Join(namesOf(found), ",")
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestDriver: as many slices and claims as were asked for, each GPU held once,
// and slices that change when they are written anew.
func TestDriver(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := fake.NewClientset()
	var nodes []corev1.Node
	for _, name := range []string{"node-0", "node-1", "node-2"} {
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	d := &Driver{Slices: []string{"slices-gpu.yaml", "slices-nic.yaml"}, Held: "held.yaml", GPUs: 8}
	if err := d.publish(ctx, client, nodes); err != nil {
		t.Fatal(err)
	}
	if err := d.hold(ctx, client, nodes, 20); err != nil {
		t.Fatal(err)
	}
	slices, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil || len(slices.Items) != 6 {
		t.Errorf("%d slices, error %v, want 6", len(slices.Items), err)
	}
	claims, err := client.ResourceV1().ResourceClaims(heldNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	held := make(map[string]bool)
	for _, claim := range claims.Items {
		result := claim.Status.Allocation.Devices.Results[0]
		held[result.Pool+"/"+result.Device] = true
	}
	if len(held) != 20 {
		t.Errorf("%d GPUs are held, want 20", len(held))
	}
	if err := d.hold(ctx, client, nodes, 25); err == nil || err.Error() != "hold 25 GPUs: there are 24" {
		t.Errorf("hold too many: got error %v", err)
	}
	watched, err := client.ResourceV1().ResourceSlices().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		for event := range watched.ResultChan() {
			if slice, ok := event.Object.(*resourceapi.ResourceSlice); ok && slice.Spec.Pool.Generation == 3 {
				return
			}
		}
	}()
	if written, err := d.rewrite(ctx, client, nodes, 1000); err != nil || written < 4 {
		t.Errorf("rewrite: %d slices, error %v, want at least 4 and none", written, err)
	}
	rewritten, err := client.ResourceV1().ResourceSlices().Get(context.Background(), "gpu-node-0", metav1.GetOptions{})
	if err != nil || rewritten.Spec.Pool.Generation < 3 {
		t.Errorf("slice has generation %d, error %v, want 3 after two writes", rewritten.Spec.Pool.Generation, err)
	}
}

// TestLoad: each pod that gets a node is replaced.
func TestLoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := fake.NewClientset(&resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: loadNamespace, Name: "devices"}})
	watched, err := client.CoreV1().Pods(loadNamespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLoad(client, "pod.yaml", 1)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		first := (<-watched.ResultChan()).Object.(*corev1.Pod)
		l.bound <- first
		if gone := <-watched.ResultChan(); gone.Type != "DELETED" || gone.Object.(*corev1.Pod).UID != first.UID {
			t.Errorf("got %s of another pod, want it deleted", gone.Type)
		}
		if next := <-watched.ResultChan(); next.Type != "ADDED" {
			t.Errorf("got %s, want another pod", next.Type)
		}
	}()
	if err := l.run(ctx, 1); err != nil {
		t.Error(err)
	}
}
