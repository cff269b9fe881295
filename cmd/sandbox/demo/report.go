package demo

import (
	"fmt"
	"io"
)

// report writes what happens and counts the verdicts. Output that cannot be
// written must not stop a demo half-way.
type report struct {
	out          io.Writer
	right, wrong int
}

func (r *report) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format, args...)
}

// show prints the table, explains what is not as promised, and tells whether
// everything is.
func (r *report) show(pods []Pod, devices Devices, verdicts []Verdict) bool {
	_ = writeTable(r.out, pods, devices)
	asPromised := true
	for _, verdict := range verdicts {
		if len(verdict.Problems) == 0 {
			r.right++
			continue
		}
		r.wrong++
		asPromised = false
		for _, problem := range verdict.Problems {
			r.printf("  WRONG: pod %s: %s\n", verdict.Pod, problem)
		}
	}
	return asPromised
}

// broken counts something wrong that concerns no single pod.
func (r *report) broken(format string, args ...any) {
	r.wrong++
	r.printf("  WRONG: "+format+"\n", args...)
}

// summary is the last line.
func (r *report) summary() {
	r.printf("demo: %d placements as promised, %d wrong\n", r.right, r.wrong)
}
