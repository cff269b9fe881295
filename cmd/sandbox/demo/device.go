package demo

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// DeviceID names one device of the cluster.
type DeviceID struct {
	Driver, Pool, Device string
}

// String writes the ID as driver/pool/device.
func (id DeviceID) String() string { return id.Driver + "/" + id.Pool + "/" + id.Device }

// Devices are the published devices.
type Devices map[DeviceID]resourcev1.Device

// publishedDevices reads the slices of the newest generation of each pool.
func publishedDevices(published []resourcev1.ResourceSlice) Devices {
	type pool struct{ driver, name string }
	newest := map[pool]int64{}
	for i := range published {
		spec := &published[i].Spec
		key := pool{spec.Driver, spec.Pool.Name}
		newest[key] = max(newest[key], spec.Pool.Generation)
	}
	devices := Devices{}
	for i := range published {
		spec := &published[i].Spec
		if spec.Pool.Generation < newest[pool{spec.Driver, spec.Pool.Name}] {
			continue
		}
		for _, device := range spec.Devices {
			devices[DeviceID{spec.Driver, spec.Pool.Name, device.Name}] = device
		}
	}
	return devices
}

// attribute returns the values of an attribute of a device, written as in YAML.
// A name without domain is in the domain of the device's driver.
func (d Devices) attribute(id DeviceID, name string) []string {
	attributes := d[id].Attributes
	domain, bare, qualified := strings.Cut(name, "/")
	if !qualified {
		domain, bare = id.Driver, name
	}
	if value, ok := attributes[resourcev1.QualifiedName(domain+"/"+bare)]; ok {
		return attributeValues(value)
	}
	if domain == id.Driver { // the driver may leave its own domain out
		if value, ok := attributes[resourcev1.QualifiedName(bare)]; ok {
			return attributeValues(value)
		}
	}
	return nil
}

func attributeValues(a resourcev1.DeviceAttribute) []string {
	var values []string
	if a.StringValue != nil {
		values = append(values, *a.StringValue)
	}
	if a.VersionValue != nil {
		values = append(values, *a.VersionValue)
	}
	if a.IntValue != nil {
		values = append(values, strconv.FormatInt(*a.IntValue, 10))
	}
	if a.BoolValue != nil {
		values = append(values, strconv.FormatBool(*a.BoolValue))
	}
	values = append(values, a.StringValues...)
	values = append(values, a.VersionValues...)
	for _, value := range a.IntValues {
		values = append(values, strconv.FormatInt(value, 10))
	}
	for _, value := range a.BoolValues {
		values = append(values, strconv.FormatBool(value))
	}
	return values
}

// describe says in short what a device is: "H100, 80Gi".
func (d Devices) describe(id DeviceID) string {
	device, ok := d[id]
	if !ok {
		return "not published"
	}
	var parts []string
	if names := d.attribute(id, "productName"); len(names) > 0 {
		parts = append(parts, shortProduct(names[0]))
	}
	for _, name := range []resourcev1.QualifiedName{"memory", resourcev1.QualifiedName(id.Driver + "/memory")} {
		if memory, ok := device.Capacity[name]; ok {
			parts = append(parts, memory.Value.String())
		}
	}
	return strings.Join(parts, ", ")
}

var (
	inBrackets = regexp.MustCompile(`\[(.+)\]`)
	// brands say nothing where all devices are of one maker.
	brands = []string{"NVIDIA", "Tesla", "AMD", "Intel"}
)

// shortProduct cuts a product name to the model: "NVIDIA A100-SXM4-40GB" is an
// A100, and "MT2910 Family [ConnectX-7]" a ConnectX-7.
func shortProduct(name string) string {
	if match := inBrackets.FindStringSubmatch(name); match != nil {
		return match[1]
	}
	words := strings.Fields(name)
	for len(words) > 1 && slices.Contains(brands, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return name
	}
	model, _, _ := strings.Cut(words[0], "-")
	return model
}
