package deviceallocation

import (
	"errors"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/reason"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/result"
)

// unresolvable rejects a pod, or a node, until an event changes something.
// Preempting pods does not help: their devices are not offered to it yet.
func unresolvable(text string) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, text)
}

// statusOf words an error of the core. p is the problem that it is about, or
// nil.
func statusOf(err error, p *problem.Problem) *fwk.Status {
	var (
		rejection *allocator.Rejection
		refused   *problem.RefusedError
		configs   *result.TooManyConfigsError
		claim     *claimError
	)
	if text := reason.Failed(p, err); text != "" {
		return fwk.NewStatus(fwk.Error, text)
	}
	switch {
	case errors.As(err, &rejection):
		return unresolvable(reason.Node(p, rejection))
	case errors.As(err, &refused):
		return unresolvable(reason.Refused(refused))
	case errors.As(err, &configs), errors.As(err, &claim):
		return unresolvable(err.Error())
	default:
		return fwk.AsStatus(err)
	}
}
