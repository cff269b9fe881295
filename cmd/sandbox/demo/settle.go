package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// lookInterval is the pause between two looks at the cluster.
	lookInterval = 200 * time.Millisecond
	// patience is how long anything may take on a busy machine before it counts
	// as not happening.
	patience = time.Minute
)

// settle plays the drivers and waits until nothing is about to change in a
// namespace: there are at
// least as many pods as promised and moved is true of them, none is leaving,
// each runs or has been refused, and the scheduler has nothing left to try. The
// last look must equal the one before: the scheduler writes conditions a moment
// after it has given up on a pod.
//
// After patience it returns the last look with the reason why that is not
// settled; err is for what has nothing to do with the pods.
func (r *run) settle(ctx context.Context, namespace string, pods int, moved func([]Pod) string) (last []Pod, unsettled string, err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var before []Pod
	err = wait.PollUntilContextCancel(limited, lookInterval, true, func(ctx context.Context) (bool, error) {
		attached, err := r.attach(ctx, namespace)
		for _, id := range attached {
			r.printf("  %s of %s is allocated; its driver attaches it and reports that\n", id.Device, id.Pool)
		}
		if err != nil {
			return false, err
		}
		seen, err := observe(ctx, r.client, namespace)
		if err != nil {
			return false, err
		}
		before, last = last, seen
		if unsettled = restless(seen, pods); unsettled == "" {
			unsettled = moved(seen)
		}
		if unsettled != "" {
			return false, nil
		}
		queues, err := r.scheduler.queues(ctx)
		if err != nil {
			return false, err
		}
		if unsettled = busy(queues, seen); unsettled == "" && !cmp.Equal(before, last) {
			unsettled = "the pods are still changing"
		}
		return unsettled == "", nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case err != nil && limited.Err() == nil:
		return nil, "", err
	case err != nil && unsettled == "":
		unsettled = "the cluster did not answer"
	}
	return last, unsettled, nil
}

// restless says why pods are not settled; empty if they are.
func restless(pods []Pod, promised int) string {
	if len(pods) < promised {
		return fmt.Sprintf("there are %d of %d pods", len(pods), promised)
	}
	for _, pod := range pods {
		switch {
		case pod.Leaving:
			return fmt.Sprintf("pod %s is being deleted", pod.Name)
		case pod.Node != "" && !pod.Running:
			return fmt.Sprintf("pod %s is bound, but does not run", pod.Name)
		case pod.Node == "" && pod.Condition == "":
			return fmt.Sprintf("the scheduler has said nothing about pod %s", pod.Name)
		}
	}
	return ""
}

// busy says what the scheduler still has to do; empty if nothing. A pod that it
// is trying at the moment is in no queue, so all that wait must be in the one
// for refused pods.
func busy(queues map[string]int, pods []Pod) string {
	waiting := 0
	for _, pod := range pods {
		if pod.Node == "" {
			waiting++
		}
	}
	if refused := queues["unschedulable"]; refused != waiting || queues["active"]+queues["backoff"] > 0 {
		return fmt.Sprintf("the scheduler is at work: of %d waiting pods it has refused %d", waiting, refused)
	}
	return ""
}

// await polls until done returns true, an error, or patience is over.
func await(ctx context.Context, what string, done func(ctx context.Context) (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := wait.PollUntilContextCancel(limited, lookInterval, true, done)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil && !errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("wait for %s: not within %s: %w", what, patience, err)
	case limited.Err() != nil:
		return fmt.Errorf("wait for %s: not within %s", what, patience)
	default:
		return fmt.Errorf("wait for %s: %w", what, err)
	}
}
