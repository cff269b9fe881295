package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/drain"
)

// taintRuleName is the rule that takes a device in use out of service.
const taintRuleName = "demo-broken-device"

// mishaps lets a device fail and then a node, while the example's Deployment
// runs. Its controllers replace the pods; the scheduler has to find devices
// elsewhere.
func (r *run) mishaps(ctx context.Context, e *Example, pods []Pod) error {
	if slices.ContainsFunc(pods, func(pod Pod) bool { return !pod.Running || len(pod.Devices) == 0 }) || len(pods) == 0 {
		r.broken("no device can fail in example %s: not all of its pods run with devices", e.Name)
		return nil
	}
	victim := pods[0]
	broken := victim.Devices[0].ID
	r.printf("\n%s of %s breaks: a DeviceTaintRule with NoExecute evicts %s\n", broken.Device, broken.Pool, victim.Name)
	if err := r.taint(ctx, broken); err != nil {
		return err
	}
	onBroken := func(pod Pod) string {
		if uses(pod, broken) {
			return fmt.Sprintf("has the tainted device %s", broken)
		}
		return ""
	}
	pods, unsettled, err := r.settle(ctx, e.namespace(), e.Expect.pods(), gone(victim.UID))
	if err != nil {
		return err
	}
	if err := r.judge(ctx, e, pods, unsettled, onBroken); err != nil {
		return err
	}

	node, evicted := busiest(pods)
	if node == "" {
		r.broken("no node can be drained: no pod of example %s runs", e.Name)
		return nil
	}
	r.printf("\n%s is drained of %s\n", node, namesOf(pods, evicted))
	if err := r.drain(ctx, node); err != nil {
		return err
	}
	pods, unsettled, err = r.settle(ctx, e.namespace(), e.Expect.pods(), gone(evicted...))
	if err != nil {
		return err
	}
	return r.judge(ctx, e, pods, unsettled, func(pod Pod) string {
		if pod.Node == node {
			return fmt.Sprintf("runs on the drained node %s", node)
		}
		return onBroken(pod)
	})
}

func (r *run) taint(ctx context.Context, id DeviceID) error {
	rule := &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: taintRuleName},
		Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: &id.Driver, Pool: &id.Pool, Device: &id.Device},
			Taint:          resourcev1.DeviceTaint{Key: "example.com/broken", Effect: resourcev1.DeviceTaintEffectNoExecute},
		},
	}
	if _, err := r.client.ResourceV1().DeviceTaintRules().Create(ctx, rule, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("taint device %s: %w", id, err)
	}
	r.undo = append(r.undo, "delete devicetaintrule "+taintRuleName)
	return nil
}

// drain cordons the node and evicts its pods with the code of `kubectl drain`.
func (r *run) drain(ctx context.Context, name string) error {
	node, err := r.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("drain node %s: %w", name, err)
	}
	helper := &drain.Helper{
		Ctx: ctx, Client: r.client, GracePeriodSeconds: -1, Timeout: patience,
		Out: io.Discard, ErrOut: r.out,
	}
	if err := drain.RunCordonOrUncordon(helper, node, true); err != nil {
		return fmt.Errorf("drain node %s: %w", name, err)
	}
	r.undo = append(r.undo, "uncordon "+name)
	if err := drain.RunNodeDrain(helper, name); err != nil {
		return fmt.Errorf("drain node %s: %w", name, err)
	}
	return nil
}

// gone says which of the pods is still there; empty if none.
func gone(uids ...types.UID) func([]Pod) string {
	return func(pods []Pod) string {
		for _, pod := range pods {
			if slices.Contains(uids, pod.UID) {
				return fmt.Sprintf("pod %s is still there", pod.Name)
			}
		}
		return ""
	}
}

// busiest returns the node with most of the pods, and these pods. Of equally
// busy ones it is the first by pod name.
func busiest(pods []Pod) (node string, there []types.UID) {
	byNode := map[string][]types.UID{}
	for _, pod := range pods {
		if pod.Node != "" {
			byNode[pod.Node] = append(byNode[pod.Node], pod.UID)
		}
	}
	for _, pod := range pods {
		if len(byNode[pod.Node]) > len(there) {
			node, there = pod.Node, byNode[pod.Node]
		}
	}
	return node, there
}

func namesOf(pods []Pod, uids []types.UID) string {
	var names []string
	for _, pod := range pods {
		if slices.Contains(uids, pod.UID) {
			names = append(names, pod.Name)
		}
	}
	return strings.Join(names, ", ")
}
