package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// oracle says what a node can reach, computed from the objects alone, slowly
// and without sharing code with the inventory.
type oracle struct {
	slices map[string]*resourceapi.ResourceSlice
	rules  map[string]*resourceapi.DeviceTaintRule
}

// view has one line per pool: its ID, then the fault's kind or the devices with
// their taints.
func (o *oracle) view(node *corev1.Node) []string {
	pools := make(map[[2]string][]*resourceapi.ResourceSlice)
	for _, name := range slices.Sorted(maps.Keys(o.slices)) {
		slice := o.slices[name]
		id := [2]string{slice.Spec.Driver, slice.Spec.Pool.Name}
		pools[id] = append(pools[id], slice)
	}
	ids := slices.SortedFunc(maps.Keys(pools), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	var lines []string
	for _, id := range ids {
		newest := pools[id][0].Spec.Pool.Generation
		for _, slice := range pools[id] {
			newest = max(newest, slice.Spec.Pool.Generation)
		}
		current := slices.DeleteFunc(pools[id], func(s *resourceapi.ResourceSlice) bool { return s.Spec.Pool.Generation < newest })
		var targeting []*resourceapi.ResourceSlice
		var reached []string
		for _, slice := range current {
			devices, targeted := o.reach(slice, node)
			if targeted {
				targeting = append(targeting, slice)
			}
			reached = append(reached, devices...)
		}
		if len(targeting) == 0 {
			continue
		}
		line := id[0] + "/" + id[1]
		if fault := oracleFault(current, targeting); fault != "" {
			lines = append(lines, line+" "+string(fault))
			continue
		}
		lines = append(lines, strings.Join(append([]string{line}, reached...), " "))
	}
	return lines
}

func (o *oracle) reach(slice *resourceapi.ResourceSlice, node *corev1.Node) (devices []string, targeted bool) {
	each := slice.Spec.PerDeviceNodeSelection != nil
	if !each {
		targeted = oracleMatches(slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector, node)
		if !targeted {
			return nil, false
		}
	}
	if slice.Spec.SharedCounters != nil {
		return nil, targeted
	}
	for i, d := range slice.Spec.Devices {
		if each && !oracleMatches(d.NodeName, d.AllNodes, d.NodeSelector, node) {
			continue
		}
		targeted = true
		text := fmt.Sprintf("%s(%s %d)", d.Name, slice.Name, i)
		for _, name := range slices.Sorted(maps.Keys(o.rules)) {
			s := o.rules[name].Spec.DeviceSelector
			if (s.Driver == nil || *s.Driver == slice.Spec.Driver) && (s.Pool == nil || *s.Pool == slice.Spec.Pool.Name) && (s.Device == nil || *s.Device == d.Name) {
				text += "!" + o.rules[name].Spec.Taint.Key + o.rules[name].Spec.Taint.Value
			}
		}
		devices = append(devices, text)
	}
	return devices, targeted
}

// oracleMatches knows the two selectors that the generator makes.
func oracleMatches(nodeName *string, allNodes *bool, selector *corev1.NodeSelector, node *corev1.Node) bool {
	switch {
	case nodeName != nil:
		return *nodeName == node.Name
	case allNodes != nil:
		return true
	case selector == nil:
		return false
	default:
		want := selector.NodeSelectorTerms[0].MatchExpressions[0]
		return want.Operator == corev1.NodeSelectorOpIn && node.Labels["zone"] == want.Values[0]
	}
}

func oracleFault(current, targeting []*resourceapi.ResourceSlice) FaultKind {
	want := current[0].Spec.Pool.ResourceSliceCount
	sets := make(map[string]map[string]resourceapi.Counter)
	duplicateSet, bad, dangling := false, false, false
	for _, s := range current {
		if s.Spec.Pool.ResourceSliceCount != want {
			return Contradictory
		}
		bad = bad || oracleBad(s.Spec.NodeSelector)
		for _, d := range s.Spec.Devices {
			bad = bad || (s.Spec.PerDeviceNodeSelection != nil && s.Spec.SharedCounters == nil && oracleBad(d.NodeSelector))
		}
		for _, set := range s.Spec.SharedCounters {
			duplicateSet = duplicateSet || sets[set.Name] != nil
			sets[set.Name] = set.Counters
		}
	}
	for _, s := range current {
		for _, d := range s.Spec.Devices {
			for _, consumption := range d.ConsumesCounters {
				for counter := range consumption.Counters {
					_, found := sets[consumption.CounterSet][counter]
					dangling = dangling || (!found && s.Spec.SharedCounters == nil)
				}
			}
		}
	}
	names := make(map[string]bool)
	duplicateDevice := false
	for _, s := range targeting {
		for _, d := range s.Spec.Devices {
			if s.Spec.SharedCounters == nil {
				duplicateDevice = duplicateDevice || names[d.Name]
				names[d.Name] = true
			}
		}
	}
	switch {
	case int64(len(current)) < want:
		return Incomplete
	case int64(len(current)) > want:
		return Surplus
	case bad:
		return BadNodeSelector
	case duplicateSet:
		return DuplicateCounterSet
	case dangling:
		return DanglingCounter
	case duplicateDevice:
		return DuplicateDevice
	}
	return ""
}

func oracleBad(selector *corev1.NodeSelector) bool {
	return selector != nil && selector.NodeSelectorTerms[0].MatchExpressions[0].Operator != corev1.NodeSelectorOpIn
}

// viewLines writes a view in the way of the oracle.
func viewLines(view *NodeView) []string {
	var lines []string
	for _, pool := range view.Pools {
		line := pool.ID.String()
		if pool.Fault != nil {
			lines = append(lines, line+" "+string(pool.Fault.Kind))
			continue
		}
		for _, d := range pool.Devices {
			line += fmt.Sprintf(" %s(%s %d)", d.Spec.Name, d.Slice, d.Index)
			for _, taint := range d.Taints {
				line += "!" + taint.Key + taint.Value
			}
		}
		lines = append(lines, line)
	}
	return lines
}
