package deviceallocation

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// randomSuffix is what differs from run to run in the names of claims.
var randomSuffix = regexp.MustCompile(`(-extended-resources-)[a-z0-9]+`)

// flight is an attempt between Reserve and its end.
type flight struct {
	*attempt
	queued *queued
	node   string
	// preBound gets the end of PreBind once that has begun.
	preBound chan *fwk.Status
	// prepared says that PreBind has succeeded.
	prepared bool
}

// nodeInfos are the nodes that a scheduler sees, in the order of names.
func nodeInfos(h *harness) []fwk.NodeInfo {
	nodes, err := h.informers.Core().V1().Nodes().Lister().List(labels.Everything())
	if err != nil {
		h.Fatalf("list nodes: %v", err)
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	infos := make([]fwk.NodeInfo, len(nodes))
	for i, node := range nodes {
		info := framework.NewNodeInfo()
		info.SetNode(node)
		infos[i] = info
	}
	return infos
}

// look runs PreFilter and Filter as a scheduling cycle does. It returns the
// nodes that passed, and the status of the cycle without any.
func (a *attempt) look() ([]fwk.NodeInfo, *fwk.Status) {
	result, status := a.preFilter()
	if status.Code() == fwk.Skip {
		if len(a.pod.Spec.Containers) > 0 {
			// What no class backs is up to NodeResourcesFit: no node has it.
			return nil, fwk.NewStatus(fwk.Unschedulable, "Insufficient example.com/gpu")
		}
		return a.nodes, nil
	}
	if !status.IsSuccess() {
		return nil, status
	}
	var passed []fwk.NodeInfo
	status = fwk.NewStatus(fwk.Unschedulable, "no node left")
	for _, node := range a.nodes {
		if result != nil && !result.AllNodes() && !result.NodeNames.Has(node.Node().Name) {
			continue
		}
		if verdict := a.plugin.Filter(a.ctx, a.cycle, a.pod, node); verdict.IsSuccess() {
			passed = append(passed, node)
		} else if verdict.Code() == fwk.Error {
			return nil, verdict
		} else {
			status.AppendReason(verdict.Message())
		}
	}
	return passed, status
}

// schedule runs a scheduling cycle of a pod, to the end of Reserve.
func (s *simulation) schedule(q *queued) string {
	s.scheduler.nodes = nodeInfos(s.scheduler)
	a := s.scheduler.attempt(q.pod)
	q.inFlight, q.missed = true, nil
	var text string
	s.armed(func() {
		passed, status := a.look()
		if len(passed) == 0 {
			if status.Code() != fwk.Error {
				if outcome := a.postFilter(); outcome.Code() == fwk.Error {
					text = "; PostFilter: " + outcome.Message()
				} else {
					text = "; " + outcome.Message()
				}
			}
			text = fmt.Sprintf("schedule %s: %s%s", q.pod.Name, status.Message(), text)
			if slices.Contains(s.scheduler.activated.pods, q.pod.Name) {
				s.scheduler.activated.pods = nil
				status = fwk.NewStatus(fwk.Error) // is tried again like one
			}
			s.failed(q, status)
			return
		}
		node := a.best(passed)
		text = s.meanwhile(q.pod, node)
		if status := a.reserve(node); !status.IsSuccess() {
			a.unreserve(node)
			s.failed(q, status)
			text = fmt.Sprintf("schedule %s%s: Reserve: %s", q.pod.Name, text, status.Message())
			return
		}
		s.flights = append(s.flights, &flight{attempt: a, queued: q, node: node})
		s.checkReservation(a, node)
		s.checkSeen(a)
		s.checkDraws(a, node)
		text = fmt.Sprintf("schedule %s%s: reserved on %s", q.pod.Name, text, node)
	})
	return text
}

// meanwhile lets another scheduler allocate a device now and then, after Filter
// and before Reserve, which must notice if the event is not held back: one that
// the pod may be about to get. Only the scheduler has trouble with the API server.
func (s *simulation) meanwhile(pod *corev1.Pod, node string) string {
	if s.random.IntN(8) > 0 {
		return ""
	}
	s.mutex.Lock()
	s.judge = nil
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		s.judge = s.trouble
		s.mutex.Unlock()
	}()
	claim := s.onlyClaim(pod)
	if claim == nil || claim.Spec.Devices.Requests[0].Exactly == nil {
		return ""
	}
	wanted := classDrivers[claim.Spec.Devices.Requests[0].Exactly.DeviceClassName]
	slice := pick(s.random, slices.DeleteFunc(s.slicesOfDevices(), func(slice *resourceapi.ResourceSlice) bool {
		return slice.Spec.Driver != wanted || slice.Spec.NodeName != nil && *slice.Spec.NodeName != node
	}))
	if slice == nil {
		return ""
	}
	text := s.takeFrom(slice)
	s.scheduler.settle()
	s.learn()
	return " while " + text
}

// best picks the node with the highest score, the first of equal ones.
func (a *attempt) best(nodes []fwk.NodeInfo) string {
	scores := a.scores(nodes...)
	best := 0
	for i := range scores {
		if scores[i].Score > scores[best].Score {
			best = i
		}
	}
	return scores[best].Name
}

// checkReservation compares what was reserved with what the informers say:
// devices must exist, be in the node's reach and have no untolerated taint.
func (s *simulation) checkReservation(a *attempt, node string) {
	state, err := readState(a.cycle)
	s.must(err)
	if state == nil {
		return
	}
	reach := make(map[device.ID]*device.Device)
	for _, pool := range freshInventory(s.scheduler).Node(a.node(node).Node()).Pools {
		for _, d := range pool.Devices {
			reach[d.ID] = d
		}
	}
	for _, c := range state.reservation.claims {
		for _, result := range c.allocation.Devices.Results {
			d := reach[device.NewID(result.Driver, result.Pool, result.Device)]
			if d == nil {
				s.failf("%s on %s: reserved %s/%s, which is out of reach", a.pod.Name, node, result.Pool, result.Device)
			}
			if taint := device.UntoleratedTaint(d.Taints, tolerations(c.claim, result.Request)); taint != nil && !c.extended {
				s.failf("%s on %s: reserved %s, which has the taint %s", a.pod.Name, node, d.ID, taint.Key)
			}
		}
	}
}

// freshInventory is made from what the informers of a scheduler have.
func freshInventory(h *harness) *inventory.Snapshot {
	devices := inventory.New(deviceFeatures(h.plugin.gates))
	resources := h.informers.Resource().V1()
	rules, err := resources.DeviceTaintRules().Lister().List(labels.Everything())
	if err != nil {
		h.Fatalf("list rules: %v", err)
	}
	for _, rule := range rules {
		devices.SetTaintRule(rule)
	}
	published, err := resources.ResourceSlices().Lister().List(labels.Everything())
	if err != nil {
		h.Fatalf("list slices: %v", err)
	}
	for _, slice := range published {
		devices.SetSlice(slice)
	}
	return devices.Snapshot()
}

// advance takes an attempt in flight one step further: PreBind, then bind.
func (s *simulation) advance(f *flight) string {
	text, after := "", ""
	var status *fwk.Status
	ended := false
	if f.preBound != nil && !f.prepared {
		status, after = s.endPreBind(f)
		ended, after = true, " after "+after
	}
	s.armed(func() {
		step := "PreBind"
		switch {
		case f.prepared:
			step = "bind"
			s.checkReady(f)
			status = fwk.AsStatus(s.bind(f))
		case !ended:
			if status, ended = f.startPreBind(); !ended {
				text = "PreBind of " + f.pod.Name + " waits"
				return
			}
		}
		if !f.prepared && status.IsSuccess() {
			f.prepared = true
			text = "PreBind of " + f.pod.Name + after
			return
		}
		s.flights = slices.DeleteFunc(s.flights, func(other *flight) bool { return other == f })
		if status.IsSuccess() {
			s.bound[f.pod.Name] = true
			if s.queue[f.pod.Name] == f.queued {
				delete(s.queue, f.pod.Name)
			}
			text = fmt.Sprintf("bind %s to %s", f.pod.Name, f.node)
			return
		}
		text = fmt.Sprintf("%s of %s%s: %s", step, f.pod.Name, after, status.Message())
		f.unreserve(f.node)
		s.released = append(s.released, f)
		s.failing = append(s.failing, status)
	})
	s.settle()
	for i, f := range s.released {
		// The scheduler reports the end of a pod that it had assumed to run.
		s.announce(clusterEvent{event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, before: f.pod, notAbout: f.pod.Name})
		s.failed(f.queued, s.failing[i])
	}
	s.released, s.failing = nil, nil
	return text
}

// bind gives a pod its node.
func (s *simulation) bind(f *flight) error {
	pods := s.client.CoreV1().Pods(builders.Namespace)
	pod, err := pods.Get(s.T.Context(), f.pod.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.UID != f.pod.UID || pod.Spec.NodeName != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, fmt.Errorf("not the pod to be bound"))
	}
	pod.Spec.NodeName = f.node
	_, err = pods.Update(s.T.Context(), pod, metav1.UpdateOptions{})
	return err
}

// armed lets the API server make trouble while the scheduler acts.
func (s *simulation) armed(act func()) {
	s.mutex.Lock()
	s.judge = s.trouble
	s.mutex.Unlock()
	act()
	s.mutex.Lock()
	s.judge = nil
	s.mutex.Unlock()
}

// trouble decides about a request of the scheduler. Claims are written in
// parallel, so the answer depends on the request and not on the order.
func (s *simulation) trouble(request string) fault {
	request = stableName(request)
	s.asked[request]++
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d %d %s %d", s.seed, len(s.steps), request, s.asked[request])
	dice := sum.Sum64() >> 8
	resource := schema.GroupResource{Resource: "objects"}
	read := strings.HasPrefix(request, "get ")
	if s.dying {
		// The scheduler is about to be killed: some of its writes still arrive.
		if read || dice%2 == 0 {
			return fault{err: apierrors.NewForbidden(resource, request, fmt.Errorf("the scheduler is dead"))}
		}
		return fault{}
	}
	if s.faultsUntil <= len(s.steps) || dice%10 >= 4 {
		return fault{}
	}
	switch kind := dice / 10 % 4; {
	case kind == 0 && !read:
		return fault{err: apierrors.NewConflict(resource, request, fmt.Errorf("simulated"))}
	case kind == 1 && !read:
		return fault{err: apierrors.NewTimeoutError("simulated", 1), applied: true}
	case kind == 2:
		return fault{err: apierrors.NewForbidden(resource, request, fmt.Errorf("simulated"))}
	default:
		return fault{err: apierrors.NewInternalError(fmt.Errorf("simulated"))}
	}
}
