package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkDevices pairs promised and held devices. A device may keep several
// promises, so it takes a matching to know whether all can be kept at once.
func (p *Promise) checkDevices(pod Pod, devices Devices) []string {
	if len(p.Devices) != len(pod.Devices) {
		return []string{fmt.Sprintf("promised are %d devices, it has %d (%s)", len(p.Devices), len(pod.Devices), listHeld(pod.Devices))}
	}
	keeper := make([]int, len(pod.Devices)) // the promise that a held device keeps
	for i := range keeper {
		keeper[i] = -1
	}
	var assign func(promise int, tried []bool) bool
	assign = func(promise int, tried []bool) bool {
		for held := range pod.Devices {
			if tried[held] || p.Devices[promise].differs(pod, pod.Devices[held], devices) != "" {
				continue
			}
			tried[held] = true
			if keeper[held] < 0 || assign(keeper[held], tried) {
				keeper[held] = promise
				return true
			}
		}
		return false
	}
	var problems []string
	for promise := range p.Devices {
		if !assign(promise, make([]bool, len(pod.Devices))) {
			problems = append(problems, p.Devices[promise].broken(pod, devices))
		}
	}
	return problems
}

// differs says in what a held device differs from the promised one; empty if in nothing.
func (d *PromisedDevice) differs(pod Pod, held Held, devices Devices) string {
	switch {
	case held.Request != d.Request:
		return fmt.Sprintf("is for request %s", held.Request)
	case held.ID.Driver != d.Driver:
		return fmt.Sprintf("is of driver %s", held.ID.Driver)
	}
	if _, published := devices[held.ID]; !published {
		return "is not published"
	}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		if got := devices.attribute(held.ID, name); !slices.Equal(got, []string{d.Attributes[name]}) {
			return fmt.Sprintf("has %s %q", name, strings.Join(got, ", "))
		}
	}
	if !maps.Equal(d.Consumes, held.Consumes) {
		return "has " + amounts(held.Consumes) + " of its capacity"
	}
	if d.SameAs == nil {
		return ""
	}
	return d.SameAs.differs(pod, held, devices)
}

func (s *SameAs) differs(pod Pod, held Held, devices Devices) string {
	mine := devices.attribute(held.ID, s.Attribute)
	others := 0
	for _, other := range pod.Devices {
		if other.Request != s.Request {
			continue
		}
		others++
		theirs := devices.attribute(other.ID, s.Attribute)
		if !slices.ContainsFunc(mine, func(value string) bool { return slices.Contains(theirs, value) }) {
			return fmt.Sprintf("has %s %q, but %s has %q", s.Attribute, strings.Join(mine, ", "), other.ID, strings.Join(theirs, ", "))
		}
	}
	if others == 0 {
		return fmt.Sprintf("has no device of request %s beside it", s.Request)
	}
	return ""
}

// broken words a device promise that no device keeps.
func (d *PromisedDevice) broken(pod Pod, devices Devices) string {
	text := fmt.Sprintf("promised is a device for request %s of driver %s", d.Request, d.Driver)
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		text += fmt.Sprintf(", %s %s", name, d.Attributes[name])
	}
	if len(d.Consumes) > 0 {
		text += ", " + amounts(d.Consumes)
	}
	if d.SameAs != nil {
		text += fmt.Sprintf(", with the %s of request %s", d.SameAs.Attribute, d.SameAs.Request)
	}
	var have []string
	for _, held := range pod.Devices {
		difference := d.differs(pod, held, devices)
		if difference == "" {
			difference = "keeps another promise"
		}
		have = append(have, fmt.Sprintf("%s %s", held.ID, difference))
	}
	return text + "; " + strings.Join(have, "; ")
}

// amounts writes capacities: "bandwidth 40G".
func amounts(capacities map[string]string) string {
	if len(capacities) == 0 {
		return "all"
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(capacities)) {
		texts = append(texts, name+" "+capacities[name])
	}
	return strings.Join(texts, ", ")
}
