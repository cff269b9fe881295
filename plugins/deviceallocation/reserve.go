package deviceallocation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/result"
)

// Reserve enters the devices found for the node in the ledger and tells the
// framework's tracker, which other plugins read. Group cycles call it a second
// time with the same state after everything was taken back; the same devices
// are reserved then, or nothing if somebody took one meanwhile.
func (pl *Plugin) Reserve(ctx context.Context, cycle fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	s, err := readState(cycle)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s == nil || s.reservation != nil && s.reservation.node == nodeName {
		return nil
	}
	found, status := pl.choose(ctx, s, nodeName)
	if !status.IsSuccess() {
		return status
	}
	r := &reservation{node: nodeName, group: pl.groupName(pod)}
	r.add(found)
	for _, c := range s.joined {
		r.claims = append(r.claims, reservedClaim{claim: c.claim, allocation: c.allocation})
	}
	if err := pl.inFlight.join(pl.claims, r, s.devices); err != nil {
		// Somebody took a device after the snapshot. The pod tries again at once
		// with a new one: an event that has been seen will not wake it.
		return fwk.AsStatus(fmt.Errorf("reserve devices on node %s: %w", nodeName, err))
	}
	s.reservation = r
	klog.FromContext(ctx).V(5).Info("Reserved devices", "pod", klog.KObj(pod), "node", nodeName, "claims", len(r.claims))
	return nil
}

// choose makes allocations of what Filter has found for a node; nil if nothing
// has to be allocated there.
func (pl *Plugin) choose(ctx context.Context, s *state, node string) (*found, *fwk.Status) {
	if chosen := s.found[node]; chosen != nil || !s.needsDevices() {
		return chosen, nil
	}
	v, verdict, err := pl.verdictByName(ctx, s, node)
	switch {
	case err != nil:
		return nil, fwk.AsStatus(fmt.Errorf("reserve devices on node %s: %w", node, err))
	case v == nil:
		return nil, nil
	case verdict.Solution == nil:
		return nil, fwk.AsStatus(fmt.Errorf("reserve devices on node %s: Filter found none", node))
	}
	allocations, err := result.Build(v.problem, verdict.Solution, node, uuid.NewUUID)
	if err != nil {
		return nil, statusOf(err, v.problem)
	}
	if s.found == nil {
		s.found = make(map[string]*found)
	}
	s.found[node] = &found{variant: v, allocations: allocations}
	return s.found[node], nil
}

// add takes in what was chosen, if anything was.
func (r *reservation) add(found *found) {
	if found == nil {
		return
	}
	r.mappings = found.variant.mappings
	for i, claim := range found.variant.claims {
		r.claims = append(r.claims, reservedClaim{claim: claim, allocation: &found.allocations[i], extended: claim.Name == extendedClaimName})
	}
}

// devices lists what the ledger must hold. chosen is what Filter chose from.
func (r *reservation) devices(chosen *inventory.Snapshot) []ledger.Reservation {
	reservations := make([]ledger.Reservation, len(r.claims))
	for i := range r.claims {
		reservations[i] = r.claims[i].reservation(chosen)
	}
	return reservations
}

func (c *reservedClaim) reservation(chosen *inventory.Snapshot) ledger.Reservation {
	return ledger.Reservation{
		Claim:      c.claim.UID,
		Name:       types.NamespacedName{Namespace: c.claim.Namespace, Name: c.claim.Name},
		Allocation: c.allocation,
		Chosen:     chosen,
	}
}

// Unreserve takes back what Reserve and PreBind did. It may be called at any
// time and repeatedly.
func (pl *Plugin) Unreserve(ctx context.Context, cycle fwk.CycleState, pod *corev1.Pod, nodeName string) {
	s, err := readState(cycle)
	if err != nil || s == nil || s.reservation == nil {
		return
	}
	r := s.reservation
	s.reservation = nil
	pl.inFlight.leave(pl.claims, r, r.doubtful)
	if r.doubtful {
		go pl.settle(klog.FromContext(ctx), r)
	}
	pl.takeBack(ctx, pod, r)
}

// takeBack undoes the writes of a PreBind after which the pod could not be
// bound. A binding whose answer was lost may have happened all the same, and
// then the pod runs with these devices: the API server is asked first. What is
// reserved for the pod's group stays, because other pods of the group may rely
// on it; PodGroupPostFilter takes it back when none of them runs.
func (pl *Plugin) takeBack(ctx context.Context, pod *corev1.Pod, r *reservation) {
	if len(r.written) == 0 && r.created == nil {
		return
	}
	logger := klog.FromContext(ctx)
	bound, err := pl.isBound(ctx, pod)
	if err != nil {
		logger.Error(err, "Cannot tell whether the pod was bound, its claims stay as they are", "pod", klog.KObj(pod))
		return
	}
	if bound {
		return
	}
	for _, w := range r.written {
		if w.shared || r.created != nil && w.claim.UID == r.created.UID {
			continue
		}
		if err := pl.writer.Release(ctx, w.claim, pod.UID, w.tied); err != nil {
			logger.Error(err, "Cannot release claim", "pod", klog.KObj(pod), "resourceclaim", klog.KObj(w.claim))
		}
	}
	if r.created != nil {
		if err := pl.writer.DeleteClaim(ctx, r.created); err != nil {
			logger.Error(err, "Cannot delete claim for extended resources", "pod", klog.KObj(pod), "resourceclaim", klog.KObj(r.created))
		}
	}
}

// isBound asks the API server whether the pod has a node. A pod that is gone
// has none.
func (pl *Plugin) isBound(ctx context.Context, pod *corev1.Pod) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	current, err := pl.handle.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read pod: %w", err)
	case current.UID != pod.UID:
		return false, nil
	}
	return current.Spec.NodeName != "", nil
}

// errNotReserved is a broken promise of the framework.
var errNotReserved = errors.New("PreBind without Reserve")
