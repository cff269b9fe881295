package inventory

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
)

// Dump returns the snapshot as text, for people and for comparing two
// snapshots: all pools with all their devices, then what each of the given
// nodes can reach. Epochs are left out, so that equal objects give equal lines.
func (s *Snapshot) Dump(nodes ...*corev1.Node) []string {
	var lines []string
	for _, pool := range s.Pools() {
		line := fmt.Sprintf("pool %s generation %d: %d of %d slices", pool.ID, pool.Generation, pool.Have, pool.Want)
		if pool.Fault != nil {
			line += ": " + pool.Fault.Error()
		}
		lines = append(lines, line)
		for _, d := range pool.Devices {
			lines = append(lines, dumpDevice(d))
		}
	}
	for _, node := range nodes {
		lines = append(lines, fmt.Sprintf("node %s", node.Name))
		for _, pool := range s.Node(node).Pools {
			lines = append(lines, dumpNodePool(pool))
		}
	}
	return lines
}

func dumpDevice(d *device.Device) string {
	var line strings.Builder
	fmt.Fprintf(&line, "  device %s (%s %d)", d.ID.Device.Value(), d.Slice, d.Index)
	switch {
	case d.Reach.NodeName != "":
		fmt.Fprintf(&line, " on node %s", d.Reach.NodeName)
	case d.Reach.AllNodes:
		line.WriteString(" on all nodes")
	case d.Reach.NodeSelector != nil:
		fmt.Fprintf(&line, " on nodes %s", dumpJSON(d.Reach.NodeSelector))
	default:
		line.WriteString(" on no node")
	}
	for _, taint := range d.Taints {
		fmt.Fprintf(&line, ", taint %s=%s:%s", taint.Key, taint.Value, taint.Effect)
	}
	if d.Unsupported != "" {
		fmt.Fprintf(&line, ", unsupported: %s", d.Unsupported)
	}
	if d.Malformed != nil {
		fmt.Fprintf(&line, ", malformed: %v", d.Malformed)
	}
	fmt.Fprintf(&line, ": %s", dumpJSON(d.Spec))
	return line.String()
}

func dumpNodePool(pool *NodePool) string {
	if pool.Fault != nil {
		return "  " + pool.Fault.Error()
	}
	var line strings.Builder
	fmt.Fprintf(&line, "  pool %s:", pool.ID)
	for _, d := range pool.Devices {
		fmt.Fprintf(&line, " %s(%s %d)", d.ID.Device.Value(), d.Slice, d.Index)
	}
	return line.String()
}

// dumpJSON writes an API object in one line, maps in the order of their keys.
func dumpJSON(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Sprintf("(cannot be written: %v)", err)
	}
	return string(text)
}
