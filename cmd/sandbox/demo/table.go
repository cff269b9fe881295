package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// lineWidth is what conditions are wrapped at.
const lineWidth = 100

// row is one line of a table: the devices of one request of a pod.
type row struct {
	claim, request, description string
	names                       []string
}

// writeTable shows where pods run and with which devices, and why they wait.
func writeTable(out io.Writer, pods []Pod, devices Devices) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "POD\tNODE\tCLAIM\tREQUEST\tDEVICE")
	for _, pod := range pods {
		name, node := pod.Name, pod.Node
		if node == "" {
			fmt.Fprintf(table, "%s\t(waits)\t-\t-\t-\n", name)
			continue
		}
		rows := rowsOf(pod, devices)
		if len(rows) == 0 {
			fmt.Fprintf(table, "%s\t%s\t-\t-\t-\n", name, node)
		}
		for _, r := range rows {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", name, node, r.claim, r.request, r.devices())
			name, node = "", "" // once is enough
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	conditions := map[string]string{}
	for _, pod := range pods {
		if pod.Node == "" {
			conditions[pod.Name] = pod.Condition
		}
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintf(out, "  %s\n", strings.TrimRight(line, " \n")); err != nil {
			return err
		}
		pod, _, _ := strings.Cut(line, " ")
		condition, waits := conditions[pod]
		if !waits {
			continue
		}
		for _, part := range wrap(condition, lineWidth-6) {
			if _, err := fmt.Fprintf(out, "      %s\n", part); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowsOf puts devices of one request that look alike into one row.
func rowsOf(pod Pod, devices Devices) []row {
	var rows []row
	for _, held := range pod.Devices {
		description := devices.describe(held.ID)
		if len(held.Consumes) > 0 {
			description = strings.TrimPrefix(description+", "+amounts(held.Consumes), ", ")
		}
		if held.Admin {
			description = strings.TrimPrefix(description+", admin access", ", ")
		}
		if n := len(rows) - 1; n >= 0 && rows[n].claim == held.Claim && rows[n].request == held.Request && rows[n].description == description {
			rows[n].names = append(rows[n].names, held.ID.Device)
			continue
		}
		rows = append(rows, row{held.Claim, held.Request, description, []string{held.ID.Device}})
	}
	return rows
}

// devices writes the names and what the devices are: "gpu-3 (H100, 80Gi)".
func (r *row) devices() string {
	if r.description == "" {
		return joinNames(r.names)
	}
	return fmt.Sprintf("%s (%s)", joinNames(r.names), r.description)
}

// joinNames writes three and more consecutive names as a range: "gpu-0 to gpu-7".
func joinNames(names []string) string {
	if len(names) < 3 {
		return strings.Join(names, ", ")
	}
	prefix, first, ok := numbered(names[0])
	for i, name := range names {
		p, number, numbered := numbered(name)
		ok = ok && numbered && p == prefix && number == first+i
	}
	if !ok {
		return strings.Join(names, ", ")
	}
	return names[0] + " to " + names[len(names)-1]
}

// numbered splits "gpu-7" into "gpu-" and 7.
func numbered(name string) (prefix string, number int, ok bool) {
	prefix = strings.TrimRight(name, "0123456789")
	number, err := strconv.Atoi(name[len(prefix):])
	return prefix, number, err == nil
}

// wrap breaks a text between words. A word that is longer than a line gets one
// of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
