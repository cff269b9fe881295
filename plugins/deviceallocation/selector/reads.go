package selector

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// name is an attribute or capacity as CEL addresses it.
type name struct {
	domain, id string
}

func compareNames(a, b name) int {
	return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.id, b.id))
}

// reads is what an expression can see of a device. Two devices that agree on
// it get the same verdict.
type reads struct {
	driver, shareable  bool
	attributes         []name   // single attributes, sorted
	attributeDomains   []string // all attributes of a domain, sorted
	allAttributes      bool
	capacities         []name
	capacityDomains    []string
	allCapacities      bool
	qualifiedAttribute []resourceapi.QualifiedName // attributes[i] as map key
	qualifiedCapacity  []resourceapi.QualifiedName
}

// finish sorts what the analysis has found and prepares the map keys, so that
// the hot path builds no strings.
func (r *reads) finish() {
	slices.SortFunc(r.attributes, compareNames)
	r.attributes = slices.Compact(r.attributes)
	slices.SortFunc(r.capacities, compareNames)
	r.capacities = slices.Compact(r.capacities)
	slices.Sort(r.attributeDomains)
	r.attributeDomains = slices.Compact(r.attributeDomains)
	slices.Sort(r.capacityDomains)
	r.capacityDomains = slices.Compact(r.capacityDomains)
	r.qualifiedAttribute = qualified(r.attributes)
	r.qualifiedCapacity = qualified(r.capacities)
}

func qualified(names []name) []resourceapi.QualifiedName {
	result := make([]resourceapi.QualifiedName, len(names))
	for i, n := range names {
		result[i] = resourceapi.QualifiedName(n.domain + "/" + n.id)
	}
	return result
}

const (
	absent  = '-'
	present = '+'
	next    = ';'
)

// appendKey encodes the part of the device that the expression reads. It
// allocates nothing unless the expression reads whole maps or the key outgrows
// the buffer.
func (r *reads) appendKey(key []byte, d *device.Device) []byte {
	driver := d.ID.Driver.Value()
	// Entries in bare notation belong to the driver's domain, so the driver
	// matters wherever whole maps are read.
	if r.driver || r.allAttributes || r.allCapacities {
		key = appendText(key, driver)
	}
	if r.shareable {
		key = append(key, shareability(d))
	}
	for i, n := range r.attributes {
		attribute, ok := lookup(d.Spec.Attributes, r.qualifiedAttribute[i], n, driver)
		key = appendAttribute(key, attribute, ok)
	}
	for i, n := range r.capacities {
		capacity, ok := lookup(d.Spec.Capacity, r.qualifiedCapacity[i], n, driver)
		key = appendCapacity(key, capacity, ok)
	}
	if r.allAttributes || len(r.attributeDomains) > 0 {
		key = appendDomains(key, d.Spec.Attributes, driver, r.allAttributes, r.attributeDomains, appendAttribute)
	}
	if r.allCapacities || len(r.capacityDomains) > 0 {
		key = appendDomains(key, d.Spec.Capacity, driver, r.allCapacities, r.capacityDomains, appendCapacity)
	}
	return key
}

func shareability(d *device.Device) byte {
	if shareable := d.Spec.AllowMultipleAllocations; shareable != nil && *shareable {
		return present
	}
	return absent
}

// lookup finds an entry by its full name or, in the driver's own domain, by
// its bare one.
func lookup[V any](entries map[resourceapi.QualifiedName]V, full resourceapi.QualifiedName, n name, driver string) (V, bool) {
	entry, ok := entries[full]
	if !ok && n.domain == driver {
		entry, ok = entries[resourceapi.QualifiedName(n.id)]
	}
	return entry, ok
}

func appendDomains[V any](key []byte, entries map[resourceapi.QualifiedName]V, driver string, all bool, domains []string, appendValue func([]byte, V, bool) []byte) []byte {
	for _, full := range slices.Sorted(maps.Keys(entries)) {
		domain, id, ok := strings.Cut(string(full), "/")
		if !ok {
			domain, id = driver, string(full)
		}
		if _, wanted := slices.BinarySearch(domains, domain); !wanted && !all {
			continue
		}
		key = appendText(key, domain)
		key = appendText(key, id)
		key = appendValue(key, entries[full], true)
	}
	return append(key, next)
}

func appendAttribute(key []byte, attribute resourceapi.DeviceAttribute, ok bool) []byte {
	if !ok {
		return append(key, absent)
	}
	if value, scalar := device.ValueOf(attribute); scalar {
		return value.Append(append(key, present))
	}
	return appendList(append(key, next), attribute)
}

func appendList(key []byte, attribute resourceapi.DeviceAttribute) []byte {
	for _, v := range attribute.IntValues {
		value, _ := device.ValueOf(resourceapi.DeviceAttribute{IntValue: &v})
		key = value.Append(key)
	}
	for _, v := range attribute.BoolValues {
		value, _ := device.ValueOf(resourceapi.DeviceAttribute{BoolValue: &v})
		key = value.Append(key)
	}
	for _, v := range attribute.StringValues {
		value, _ := device.ValueOf(resourceapi.DeviceAttribute{StringValue: &v})
		key = value.Append(key)
	}
	for _, v := range attribute.VersionValues {
		value, _ := device.ValueOf(resourceapi.DeviceAttribute{VersionValue: &v})
		key = value.Append(key)
	}
	return append(key, next)
}

func appendCapacity(key []byte, capacity resourceapi.DeviceCapacity, ok bool) []byte {
	if !ok {
		return append(key, absent)
	}
	return appendText(append(key, present), capacity.Value.String())
}

// appendText writes a string with its length, so that keys stay unambiguous.
func appendText(key []byte, text string) []byte {
	key = append(key, byte(len(text)), byte(len(text)>>8))
	return append(key, text...)
}
