package hardware_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/hardware"
)

func TestLoad(t *testing.T) {
	tests := map[string]struct {
		in      string
		want    []string // names of nodes, slices, classes
		wantErr string
	}{
		"documents with comments and gaps": {
			in: "# nothing yet\n---\n" +
				"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\n---\n" +
				"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: c}\nspec: {}\n",
			want: []string{"a", "c"},
		},
		"list as kubectl prints it": {
			in: "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n" +
				"- {apiVersion: v1, kind: Node, metadata: {name: a, uid: x, resourceVersion: '7'}}\n" +
				"- {apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d, nodeName: a, pool: {name: a, generation: 0, resourceSliceCount: 1}}}\n",
			want: []string{"a", "s"},
		},
		"json":  {in: `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`, want: []string{"a"}},
		"empty": {in: "", want: nil},
		"misspelled field": {
			in:      "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capcity: {cpu: 1}}\n",
			wantErr: `decode document 1 of machines.yaml: strict decoding error: unknown field "status.capcity"`,
		},
		"repeated field": {
			in:      "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec: {}\nspec: {}\n",
			wantErr: `key "spec" already set`,
		},
		"other kind": {
			in:      "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
			wantErr: "decode document 2 of machines.yaml: kind Pod of v1 is no part of a hardware description",
		},
		"old API version": {
			in:      "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceSlice\nmetadata: {name: s}\n",
			wantErr: "kind ResourceSlice of resource.k8s.io/v1beta1 is no part of a hardware description",
		},
		"no kind":   {in: "metadata: {name: a}\n", wantErr: "Object 'Kind' is missing"},
		"no name":   {in: "apiVersion: v1\nkind: Node\nmetadata: {generateName: a-}\n", wantErr: "Node: metadata.name is missing"},
		"bad list":  {in: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret}\n", wantErr: "item 0 of the list: kind Secret"},
		"bad quant": {in: "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: many}}\n", wantErr: "quantities must match"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := hardware.Load(strings.NewReader(tc.in), "machines.yaml")
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("got error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, node := range objects.Nodes {
				got = append(got, node.Name)
			}
			for _, slice := range objects.Slices {
				got = append(got, slice.Name)
			}
			for _, class := range objects.Classes {
				got = append(got, class.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}
