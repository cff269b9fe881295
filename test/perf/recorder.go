package perf

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// measuredLabel is on the pods that count.
const measuredLabel = "measured"

// Record is what a run says about itself, beside the data items of
// scheduler_perf.
type Record struct {
	// Plugins are those that reserve devices in the profile that ran.
	Plugins []string `json:"plugins"`
	// Searches counts the searches of our allocator.
	Searches int `json:"searches"`
	// Rewrites counts the slices that the driver wrote anew.
	Rewrites int `json:"rewrites,omitempty"`
	// Requests counts the requests to the API server about the objects that
	// scheduling is about, in the whole run: those that were there before as well.
	Requests map[string]int `json:"requests,omitempty"`
	// Pods is the number of measured pods that got a node.
	Pods int `json:"pods"`
	// Seconds and CPUSeconds pass from the first measured pod to the last that
	// got its node. The CPU time is that of the process with API server,
	// controllers and scheduler; etcd is not in it.
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	// PeakBytes is the largest resident set of that process up to then.
	PeakBytes int64 `json:"peakBytes"`
}

// count takes a counter over.
func (r *Record) count(metric string, labels map[string]string, value int) {
	switch metric {
	case "device_scheduler_searches_total":
		r.Searches += value
	case "apiserver_request_total":
		switch labels["resource"] {
		case "pods", "resourceclaims", "events", "podgroups":
		default:
			return
		}
		request := labels["verb"] + " " + labels["resource"]
		if subresource := labels["subresource"]; subresource != "" {
			request += "/" + subresource
		}
		if r.Requests == nil {
			r.Requests = make(map[string]int)
		}
		r.Requests[request] += value
	}
}

// recorder watches the pods. scheduler_perf samples once a second and does not
// tell CPU time; this takes each event, as the scheduler's own informer has it.
type recorder struct {
	// bound gets the pods that got a node, unless it is nil. It is set before
	// the handler runs.
	bound chan<- *corev1.Pod

	mutex  sync.Mutex
	begun  bool
	start  time.Time
	before time.Duration // CPU time at the start
	record Record
	err    error
}

func (r *recorder) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.see(nil, obj) },
		UpdateFunc: r.see,
	}
}

func (r *recorder) see(before, after any) {
	pod, ok := after.(*corev1.Pod)
	if !ok || pod.Labels[measuredLabel] == "" {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.begun {
		r.begun, r.start = true, time.Now()
		r.before, _ = r.usage()
	}
	earlier, _ := before.(*corev1.Pod)
	if pod.Spec.NodeName == "" || earlier != nil && earlier.Spec.NodeName != "" {
		return
	}
	r.record.Pods++
	r.record.Seconds = time.Since(r.start).Seconds()
	spent, peak := r.usage()
	r.record.CPUSeconds = (spent - r.before).Seconds()
	r.record.PeakBytes = peak
	if r.bound != nil {
		select {
		case r.bound <- pod:
		default: // nobody reads at the end
		}
	}
}

// usage returns the CPU time and the largest resident set of this process.
func (r *recorder) usage() (time.Duration, int64) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		r.err = fmt.Errorf("read CPU time: %w", err)
		return 0, 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), int64(usage.Maxrss) * 1024
}

// change changes the record.
func (r *recorder) change(change func(*Record)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change(&r.record)
}

// write writes the record into a file.
func (r *recorder) write(file string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.err != nil {
		return r.err
	}
	content, err := json.Marshal(r.record)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}
