package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// All examples of the project can be read, and one of them is the one to which
// the mishaps happen.
func TestLoadExamples(t *testing.T) {
	examples, err := LoadExamples(filepath.Join("..", "..", "..", "manifests", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]string{} // the object that is applied first
	for _, example := range examples {
		first[example.Name] = example.Objects[0].GetKind()
	}
	want := map[string]string{
		"admin-access": "Namespace", "admin-access-shared": "Namespace", "binding-conditions": "ResourceClaimTemplate",
		"compatibility-groups": "ResourceClaimTemplate", "consumable-capacity": "ResourceClaimTemplate",
		"deployment": "ResourceClaimTemplate", "derived-attributes": "ResourceClaimTemplate", "extended-resource": "Pod",
		"gpu-by-attributes": "ResourceClaimTemplate", "gpu-nic-aligned": "ResourceClaimTemplate",
		"list-attributes": "ResourceClaimTemplate", "one-gpu": "ResourceClaimTemplate",
		"optional-node-operations": "DeviceClass", "partitionable": "ResourceClaimTemplate",
		"pod-group":        "ResourceClaimTemplate",
		"prioritized-list": "ResourceClaimTemplate", "shared-claim": "ResourceClaim", "taints": "DeviceTaintRule",
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("first object by example (-want +got):\n%s", diff)
	}
	if _, ok := first[mishapExample]; !ok {
		t.Errorf("there is no example %s", mishapExample)
	}
}

func TestLoadExamplesRefuses(t *testing.T) {
	const promise = "placements:\n- {pod: a, pending: true, conditionContains: [x]}\n"
	const pod = "kind: Pod\nmetadata: {name: a}\n"
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"no example":       {map[string]string{"README.md": "# x\n"}, "holds none"},
		"no promise":       {map[string]string{"a/workload.yaml": pod, "a/README.md": "# x\n"}, "it needs workload.yaml and expect.yaml"},
		"no workload":      {map[string]string{"a/expect.yaml": promise, "a/README.md": "# x\n"}, "it needs workload.yaml and expect.yaml"},
		"no README":        {map[string]string{"a/expect.yaml": promise, "a/workload.yaml": pod}, "README.md: no such file"},
		"no heading":       {map[string]string{"a/expect.yaml": promise, "a/workload.yaml": pod, "a/README.md": "x\n"}, "does not begin with a heading"},
		"misspelt promise": {map[string]string{"a/expect.yaml": "placement: []\n"}, `a/expect.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "placement"`},
		"nameless object":  {map[string]string{"a/workload.yaml": pod + "---\nkind: Pod\n"}, "a/workload.yaml: document 2: kind and metadata.name are needed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tc.files {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := LoadExamples(dir)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}
