package demo

import (
	"context"
	"fmt"
)

// mishapExample is the example that goes on to show what happens when devices
// and nodes fail. It runs last, because the others want all devices free.
const mishapExample = "deployment"

// play runs all examples that need no further feature gates, each on a cluster
// whose devices are free.
func (r *run) play(ctx context.Context, examples []*Example) error {
	var last *Example
	for _, example := range examples {
		if len(example.Expect.FeatureGates) > 0 {
			continue // the integration tests play it
		}
		if example.Name == mishapExample {
			last = example
			continue
		}
		if _, err := r.example(ctx, example); err != nil {
			return fmt.Errorf("run example %s: %w", example.Name, err)
		}
		if err := r.Remove(ctx, example); err != nil {
			return fmt.Errorf("remove example %s: %w", example.Name, err)
		}
	}
	if last == nil {
		return nil
	}
	pods, err := r.example(ctx, last)
	if err == nil {
		err = r.mishaps(ctx, last, pods)
	}
	if err != nil {
		return fmt.Errorf("run example %s: %w", last.Name, err)
	}
	return nil
}

// example applies one example, waits until it has settled, and reports.
func (r *run) example(ctx context.Context, e *Example) ([]Pod, error) {
	r.printf("\n%s: %s\n", e.Name, e.Title)
	if err := r.Apply(ctx, e); err != nil {
		return nil, err
	}
	pods, unsettled, err := r.settle(ctx, e.namespace(), e.Expect.pods(), func([]Pod) string { return "" })
	if err != nil {
		return nil, err
	}
	return pods, r.judge(ctx, e, pods, unsettled, nil)
}

// judge reports the pods of an example. forbidden says what else must not be
// true of a pod; nil forbids nothing.
func (r *run) judge(ctx context.Context, e *Example, pods []Pod, unsettled string, forbidden func(Pod) string) error {
	devices, err := r.devices(ctx)
	if err != nil {
		return err
	}
	verdicts := Check(e.Expect, pods, devices)
	if forbidden != nil {
		for _, pod := range pods {
			if problem := forbidden(pod); problem != "" {
				addProblem(verdicts, pod.Name, problem)
			}
		}
	}
	asPromised := r.show(pods, devices, verdicts)
	switch {
	case unsettled == "":
	case asPromised: // but who knows for how long
		r.broken("example %s has not settled within %s: %s", e.Name, patience, unsettled)
	default:
		r.printf("  after waiting for %s: %s\n", patience, unsettled)
	}
	return nil
}
