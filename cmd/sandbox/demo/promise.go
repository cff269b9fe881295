package demo

import (
	"errors"
	"fmt"
	"path"

	"sigs.k8s.io/yaml"
)

// Expectation is what an expect.yaml holds: the scheduler's promise for one
// example, which must name every pod of the example.
type Expectation struct {
	// FeatureGates that the example needs and that are off by default. An example
	// with some is not part of the demo: the integration tests play it.
	FeatureGates []string `json:"featureGates,omitempty"`

	Placements []Promise `json:"placements"`
}

// Promise concerns one pod, or several that are alike.
type Promise struct {
	Pod    string `json:"pod"`             // name, or the beginning of it
	Prefix bool   `json:"prefix"`          // Pod is the beginning of a name
	Count  int    `json:"count,omitempty"` // how many pods, 0 means 1

	// For a pod that runs.
	Nodes             []string         `json:"nodes,omitempty"`             // patterns as of path.Match, one must match
	Devices           []PromisedDevice `json:"devices,omitempty"`           // all devices of each pod
	SharesDevicesWith []string         `json:"sharesDevicesWith,omitempty"` // pods that have all of these devices as well
	// SameForAll is an attribute that has one value for all devices of all these pods.
	SameForAll string `json:"sameForAll,omitempty"`

	// For a pod that cannot run.
	Pending           bool     `json:"pending,omitempty"`
	ConditionContains []string `json:"conditionContains,omitempty"` // all of these
}

// PromisedDevice describes one device of a pod.
type PromisedDevice struct {
	Request string `json:"request"` // with the alternative, as in the allocation: gpu/two-turing
	Driver  string `json:"driver"`
	// Attributes as the driver publishes them; a name without domain is in the driver's.
	Attributes map[string]string `json:"attributes,omitempty"`
	SameAs     *SameAs           `json:"sameAs,omitempty"`
	// Consumes is what the pod has of the capacity of a shared device. Without it
	// the pod must have the device for itself.
	Consumes map[string]string `json:"consumes,omitempty"`
}

// SameAs promises that the devices of another request of the pod have the same
// value of an attribute.
type SameAs struct {
	Request   string `json:"request"`
	Attribute string `json:"attribute"`
}

// pods returns how many pods a promise is about.
func (p *Promise) pods() int { return max(p.Count, 1) }

// pods returns how many pods an expectation is about.
func (e *Expectation) pods() int {
	sum := 0
	for i := range e.Placements {
		sum += e.Placements[i].pods()
	}
	return sum
}

// decodeExpectation reads an expect.yaml and refuses unknown fields: a promise
// that is misspelt would never be checked.
func decodeExpectation(text []byte) (*Expectation, error) {
	var e Expectation
	if err := yaml.UnmarshalStrict(text, &e); err != nil {
		return nil, err
	}
	if len(e.Placements) == 0 {
		return nil, errors.New("placements: nothing is promised: name every pod of the example")
	}
	for i := range e.Placements {
		if err := e.Placements[i].validate(); err != nil {
			return nil, fmt.Errorf("placements[%d] (pod %q): %w", i, e.Placements[i].Pod, err)
		}
	}
	return &e, nil
}

func (p *Promise) validate() error {
	switch {
	case p.Pod == "":
		return errors.New("pod: is missing")
	case p.Count < 0:
		return fmt.Errorf("count: %d is negative", p.Count)
	case p.Count > 1 && !p.Prefix:
		return fmt.Errorf("count: %d pods cannot have one name: set prefix", p.Count)
	case p.Pending && (len(p.Nodes)+len(p.Devices)+len(p.SharesDevicesWith) > 0 || p.SameForAll != ""):
		return errors.New("pending: a pod that waits has no node and no devices: remove one or the other")
	case p.Pending && len(p.ConditionContains) == 0:
		return errors.New("conditionContains: is missing: say what the condition of the waiting pod must tell")
	case !p.Pending && len(p.ConditionContains) > 0:
		return errors.New("conditionContains: is for pods with pending: true")
	case !p.Pending && (len(p.Nodes) == 0 || len(p.Devices) == 0):
		return errors.New("nodes, devices: both are needed for a pod that is to run")
	}
	for _, pattern := range p.Nodes {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("nodes: pattern %q: %w", pattern, err)
		}
	}
	for i, device := range p.Devices {
		if device.Request == "" || device.Driver == "" {
			return fmt.Errorf("devices[%d]: request and driver are needed", i)
		}
		if s := device.SameAs; s != nil && (s.Request == "" || s.Attribute == "") {
			return fmt.Errorf("devices[%d].sameAs: request and attribute are needed", i)
		}
	}
	return nil
}
