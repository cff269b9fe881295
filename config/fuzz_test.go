package config_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/device-scheduler/device-scheduler/config"
)

// FuzzDecode looks for a panic, for accepted args that are not valid, and for args that change when they are written
// and read again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"stepBudget":1}`, `{"stepBudget":1e3}`, `{"filterTimeout":"1h2m3.5s"}`,
		`{"objective":{"strategy":"Spread","bestFitWeight":0,"packingWeight":100}}`, `{"a":1,"a":2}`, `{"objective":[{}]}`,
		"stepBudget: 5\nobjective: {strategy: None}\n", "---\n---\n", "a: &a [*a]\n", "? {}\n: 1\n", "kind: !!binary x\n",
	} {
		f.Add([]byte(seed), runtime.ContentTypeJSON)
		f.Add([]byte(seed), runtime.ContentTypeYAML)
		f.Add([]byte(seed), "")
	}
	f.Fuzz(func(t *testing.T, raw []byte, contentType string) {
		args, err := config.Decode(&runtime.Unknown{Raw: raw, ContentType: contentType})
		if err != nil {
			return
		}
		if err := args.Validate(); err != nil {
			t.Errorf("Decode accepted args that are not valid: %v", err)
		}
		encoded, err := json.Marshal(args)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		for _, written := range []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, ""} {
			again, err := config.Decode(&runtime.Unknown{Raw: encoded, ContentType: written})
			if err != nil {
				t.Fatalf("decode of the encoded args as %q: %v", written, err)
			}
			if diff := cmp.Diff(args, again); diff != "" {
				t.Errorf("args changed on the way as %q (-before +after):\n%s", written, diff)
			}
		}
	})
}
