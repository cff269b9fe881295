package controlplane

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// BinaryVariable is the environment variable that names the sandbox binary when
// Options.Binary is empty.
const BinaryVariable = "SANDBOX_BINARY"

// defaultStartTimeout is generous: on a busy two-core machine a start takes
// about ten seconds.
const defaultStartTimeout = 2 * time.Minute

// Options says what Start builds. The zero value is a complete control plane in
// a temporary directory, run by the binary that SANDBOX_BINARY names.
type Options struct {
	// Binary is the path of the sandbox binary. Empty means the value of
	// SANDBOX_BINARY.
	Binary string

	// Dir holds data, logs, certificates and kubeconfig files. It must be
	// absent, empty, or a directory that an earlier sandbox left behind, whose
	// cluster then continues. Empty means a new temporary directory, which Stop
	// removes.
	Dir string

	// KeepDir makes Stop leave a temporary directory in place, for a look at
	// the logs afterwards.
	KeepDir bool

	// Out receives one line per component while the control plane starts and
	// stops. Nil means silence.
	Out io.Writer

	// WithoutControllerManager leaves kube-controller-manager out: no claims
	// from templates, no garbage collection, and no ServiceAccount named
	// "default", without which the API server refuses pods of that namespace.
	WithoutControllerManager bool

	// WithoutKwok leaves the simulated kubelets out: nodes never become Ready
	// and pods never run.
	WithoutKwok bool

	// FeatureGates are set in the API server and the controller manager alike.
	FeatureGates map[string]bool

	// APIServerFlags and its sisters are appended to the component's own flags,
	// so that they win over them. Each is complete: "--runtime-config=api/all=true".
	APIServerFlags         []string
	ControllerManagerFlags []string
	KwokFlags              []string

	// StartTimeout bounds the start of the whole control plane. Zero means two
	// minutes.
	StartTimeout time.Duration
}

// complete fills in the defaults and refuses what cannot work.
func (o Options) complete() (Options, error) {
	if o.Binary == "" {
		o.Binary = os.Getenv(BinaryVariable)
	}
	if o.Binary == "" {
		return o, errors.New("find sandbox binary: neither Options.Binary nor " + BinaryVariable +
			" is set: build it with \"go build -o bin/sandbox ./cmd/sandbox\" and name it in one of them")
	}
	info, err := os.Stat(o.Binary)
	if err != nil {
		return o, fmt.Errorf("find sandbox binary: %w", err)
	}
	if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
		return o, fmt.Errorf("find sandbox binary: %s is not an executable file", o.Binary)
	}
	// Components run inside their directory, where a relative path would lead astray.
	if o.Binary, err = filepath.Abs(o.Binary); err != nil {
		return o, fmt.Errorf("find sandbox binary: %w", err)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	for name, flags := range map[string][]string{
		"APIServerFlags": o.APIServerFlags, "ControllerManagerFlags": o.ControllerManagerFlags, "KwokFlags": o.KwokFlags,
	} {
		for _, flag := range flags {
			if !strings.HasPrefix(flag, "--") {
				return o, fmt.Errorf("check %s: %q is not a flag: write it as one string, \"--name=value\"", name, flag)
			}
		}
	}
	return o, nil
}

// featureGateFlag returns the --feature-gates flag, or nothing when no gate is
// set. The order is fixed so that logs of equal runs are equal.
func (o Options) featureGateFlag() []string {
	if len(o.FeatureGates) == 0 {
		return nil
	}
	gates := make([]string, 0, len(o.FeatureGates))
	for _, name := range slices.Sorted(maps.Keys(o.FeatureGates)) {
		gates = append(gates, fmt.Sprintf("%s=%t", name, o.FeatureGates[name]))
	}
	return []string{"--feature-gates=" + strings.Join(gates, ",")}
}
