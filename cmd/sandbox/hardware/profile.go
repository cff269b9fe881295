package hardware

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

//go:embed classes.yaml profiles/*.yaml clusters/*.yaml
var files embed.FS

// Machine is one simulated node to be made from a profile.
type Machine struct {
	Name    string `json:"name"`    // of the node
	Profile string `json:"profile"` // one of Profiles()
	Zone    string `json:"zone,omitempty"`
	// Index tells machines of one cluster apart: PCI addresses and the node's
	// IP address come from it. From 0 to 65534.
	Index int `json:"-"`
}

// maxIndex is what the PCI domain and the address in 10.1.0.0/16 have room for.
const maxIndex = 1<<16 - 2

// Profiles returns the names of the kinds of machines, sorted.
func Profiles() []string { return names("profiles") }

// Clusters returns the names of the ready-made clusters, sorted.
func Clusters() []string { return names("clusters") }

// Profile returns the node and slices of one machine, without DeviceClasses. The
// same machine always gives the same objects; the caller owns them.
func Profile(machine Machine) (*Objects, error) {
	text, err := files.ReadFile("profiles/" + machine.Profile + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("find hardware profile %q: there are %s", machine.Profile, strings.Join(Profiles(), ", "))
	}
	if problems := validation.IsDNS1123Label(machine.Name); len(problems) > 0 {
		return nil, fmt.Errorf("check name %q of a simulated machine: %s", machine.Name, strings.Join(problems, "; "))
	}
	if machine.Index < 0 || machine.Index > maxIndex {
		return nil, fmt.Errorf("check index %d of simulated machine %q: must be from 0 to %d", machine.Index, machine.Name, maxIndex)
	}
	if machine.Zone == "" {
		machine.Zone = "zone-a"
	}
	rendered, err := render(machine, text)
	if err != nil {
		return nil, err
	}
	return Load(bytes.NewReader(rendered), "profile "+machine.Profile)
}

// Classes returns the DeviceClasses for the simulated drivers' devices.
func Classes() (*Objects, error) {
	text, err := files.ReadFile("classes.yaml")
	if err != nil {
		return nil, fmt.Errorf("read device classes: %w", err)
	}
	return Load(bytes.NewReader(text), "classes.yaml")
}

// Cluster returns the machines of a ready-made cluster and the DeviceClasses.
func Cluster(name string) (*Objects, error) {
	text, err := files.ReadFile("clusters/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("find simulated cluster %q: there are %s", name, strings.Join(Clusters(), ", "))
	}
	var cluster struct {
		Nodes []Machine `json:"nodes"`
	}
	if err := yaml.UnmarshalStrict(text, &cluster); err != nil {
		return nil, fmt.Errorf("decode simulated cluster %q: %w", name, err)
	}
	all, err := Classes()
	if err != nil {
		return nil, err
	}
	for i, machine := range cluster.Nodes {
		machine.Index = i
		objects, err := Profile(machine)
		if err != nil {
			return nil, fmt.Errorf("build node %d of simulated cluster %q: %w", i, name, err)
		}
		all.Add(objects)
	}
	return all, nil
}

// render fills a profile's template in. Its functions are the least that device
// lists need: counting, a little arithmetic, and stable unique IDs.
func render(machine Machine, text []byte) ([]byte, error) {
	parsed, err := template.New(machine.Profile).Option("missingkey=error").Funcs(template.FuncMap{
		"seq":  func(n int) []int { return sequence(n) },
		"list": func(items ...any) []any { return items },
		"add":  func(a, b int) int { return a + b },
		"mul":  func(a, b int) int { return a * b },
		"div":  func(a, b int) int { return a / b },
		"mod":  func(a, b int) int { return a % b },
		// dashes makes a part of a device's name: "1g.5gb" is "1g-5gb" there.
		"dashes": func(text string) string { return strings.ReplaceAll(text, ".", "-") },
		"uuid":   func(kind string, device int) string { return deviceUUID(machine.Name, kind, device) },
	}).Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("parse hardware profile %q: %w", machine.Profile, err)
	}
	values := struct {
		Machine
		Address string
	}{machine, address(machine.Index)}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("fill in hardware profile %q: %w", machine.Profile, err)
	}
	return out.Bytes(), nil
}

func sequence(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// address returns the node's internal address.
func address(index int) string {
	host := index + 1 // .0 is the network
	return fmt.Sprintf("10.1.%d.%d", host>>8, host&0xff)
}

// deviceUUID derives an ID in the drivers' notation ("GPU-" and a UUID) from
// what identifies the device, so that it is unique and stays the same.
func deviceUUID(node, kind string, device int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", node, kind, device))
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", kind, h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// names lists the YAML files of an embedded directory without their extension.
func names(dir string) []string {
	matches, err := fs.Glob(files, dir+"/*.yaml")
	if err != nil {
		panic(err) // only for a malformed pattern
	}
	for i, match := range matches {
		matches[i] = strings.TrimSuffix(path.Base(match), ".yaml")
	}
	return matches
}
