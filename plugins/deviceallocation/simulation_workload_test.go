package deviceallocation

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const foreignScheduler = "another-scheduler"

// pick returns one of the items, nil if there is none.
func pick[T any](random *rand.Rand, items []*T) *T {
	if len(items) == 0 {
		return nil
	}
	return items[random.IntN(len(items))]
}

// createPod creates a pod of a random kind, with its claims.
func (s *simulation) createPod() string {
	s.created++
	name := fmt.Sprintf("pod-%d", s.created)
	b := builders.Pod(name)
	kind := s.random.IntN(8)
	switch kind {
	case 0:
		shared := fmt.Sprintf("shared-%d", s.random.IntN(2))
		if s.lookUp(shared) == nil {
			s.createClaim(shared, builders.Claim(shared, s.request("main")))
		}
		b.Claim(shared)
	case 1:
		b.ClaimTemplate("generated", s.className(), "")
	case 2:
		s.createExtended(name)
		return "create " + name + " with extended resources"
	default:
		for i := range 1 + s.random.IntN(2) {
			claim := fmt.Sprintf("claim-%d-%d", s.created, i)
			s.createClaim(claim, s.randomClaim(claim))
			b.Claim(claim)
		}
	}
	_, err := s.client.CoreV1().Pods(builders.Namespace).Create(s.T.Context(), b.Obj(), metav1.CreateOptions{})
	s.must(err)
	return fmt.Sprintf("create %s of kind %d", name, kind)
}

func (s *simulation) createExtended(name string) {
	pod := extendedPod(name, fmt.Sprint(1+s.random.IntN(2)))
	_, err := s.client.CoreV1().Pods(builders.Namespace).Create(s.T.Context(), pod, metav1.CreateOptions{})
	s.must(err)
}

func (s *simulation) className() string {
	classes := simulatedClasses
	if s.crowded {
		classes = classes[2:]
	}
	return classes[s.random.IntN(len(classes))]
}

func (s *simulation) request(name string) *builders.RequestBuilder {
	b := builders.Request(name, s.className())
	if s.random.IntN(4) == 0 {
		b.Tolerate("sick")
	}
	return b
}

func (s *simulation) randomClaim(name string) *builders.ClaimBuilder {
	if kind := s.random.IntN(6); kind < 2 || s.crowded && kind < 4 {
		return s.partitionClaim(name)
	} else if kind < 4 || s.crowded {
		return s.portClaim(name)
	}
	switch s.random.IntN(6) {
	case 0:
		return builders.Claim(name, s.request("main").All())
	case 1:
		big := s.request("big").Count(2).Select(fmt.Sprintf(`device.attributes[%q].model == "b"`, driver))
		return builders.Claim(name, builders.FirstAvailable("main", big, s.request("small")))
	case 2:
		return builders.Claim(name, builders.Request("main", "gpu").Count(2)).MatchAttribute(driver + "/numa")
	case 3:
		return builders.Claim(name, s.request("main").Admin())
	case 4:
		return builders.Claim(name, s.request("main"), s.request("more"))
	default:
		return builders.Claim(name, s.request("main").Count(int64(1+s.random.IntN(2))))
	}
}

// createClaim gives each claim a UID of its own, also under an old name.
func (s *simulation) createClaim(name string, b *builders.ClaimBuilder) *resourceapi.ResourceClaim {
	claim := b.Obj()
	claim.UID = types.UID(fmt.Sprintf("%s-%d", name, s.created))
	claim, err := s.client.ResourceV1().ResourceClaims(builders.Namespace).Create(s.T.Context(), claim, metav1.CreateOptions{})
	s.must(err)
	return claim
}

func (s *simulation) deletePod() string {
	pod := pick(s.random, s.allPods())
	if pod == nil {
		return ""
	}
	s.must(s.client.CoreV1().Pods(builders.Namespace).Delete(s.T.Context(), pod.Name, metav1.DeleteOptions{}))
	return "delete " + pod.Name
}

func (s *simulation) deleteClaim() string {
	claim := pick(s.random, s.allClaims())
	if claim == nil || claim.DeletionTimestamp != nil {
		return ""
	}
	s.must(s.client.ResourceV1().ResourceClaims(builders.Namespace).Delete(s.T.Context(), claim.Name, metav1.DeleteOptions{}))
	return "delete claim " + stableName(claim.Name)
}

// allocateElsewhere does what another scheduler does for a pod of its own,
// without looking at what is free.
func (s *simulation) allocateElsewhere() string {
	slice := pick(s.random, s.slicesOfDevices())
	if slice == nil {
		return ""
	}
	return s.takeFrom(slice)
}

// takeFrom lets another scheduler allocate a device of a slice.
func (s *simulation) takeFrom(slice *resourceapi.ResourceSlice) string {
	s.created++
	claim := s.lookUp("shared-0")
	if claim == nil || claim.DeletionTimestamp != nil || claim.Status.Allocation != nil || s.random.IntN(2) == 0 {
		name := fmt.Sprintf("foreign-%d", s.created)
		claim = s.createClaim(name, claimFor(name, 1))
	}
	node := s.allNodes()[0].Name
	d := &slice.Spec.Devices[s.random.IntN(len(slice.Spec.Devices))]
	result := resourceapi.DeviceRequestAllocationResult{
		Request: claim.Spec.Devices.Requests[0].Name, Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: d.Name,
	}
	if capacity.Shareable(d) {
		result.ShareID = ptr.To(types.UID(fmt.Sprintf("foreign-share-%d", s.created)))
		result.ConsumedCapacity = bandwidth(4)
	}
	allocation := &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}}}
	if slice.Spec.NodeName != nil {
		node = *slice.Spec.NodeName
		allocation.NodeSelector = onNode(node)
	}
	pod := builders.Pod(fmt.Sprintf("foreign-pod-%d", s.created)).Claim(claim.Name).OnNode(node).Obj()
	pod.Spec.SchedulerName = foreignScheduler
	_, err := s.client.CoreV1().Pods(builders.Namespace).Create(s.T.Context(), pod, metav1.CreateOptions{})
	s.must(err)
	claims := s.client.ResourceV1().ResourceClaims(builders.Namespace)
	if !slices.Contains(claim.Finalizers, resourceapi.Finalizer) {
		claim.Finalizers = append(claim.Finalizers, resourceapi.Finalizer)
		claim, err = claims.Update(s.T.Context(), claim, metav1.UpdateOptions{})
		s.must(err)
	}
	claim.Status.Allocation = allocation
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{consumer(pod)}
	_, err = claims.UpdateStatus(s.T.Context(), claim, metav1.UpdateOptions{})
	s.must(err)
	s.foreign[claim.UID] = true
	return fmt.Sprintf("another scheduler allocates %s: %s %s/%s", claim.Name, result.Driver, result.Pool, result.Device)
}

// checkClaims is what must hold after every step.
func (s *simulation) checkClaims() {
	s.Helper()
	holders := make(map[device.ID][]heldResult)
	claims := make(map[string]*resourceapi.ResourceClaim)
	for _, claim := range s.allClaims() {
		claims[claim.Name] = claim
		if claim.Status.Allocation == nil {
			delete(s.foreign, claim.UID)
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			id := device.NewID(result.Driver, result.Pool, result.Device)
			if !s.existed[id] || !asks(claim, result.Request) {
				s.failf("claim %s has %s for request %q", claim.Name, id, result.Request)
			}
			if result.AdminAccess == nil || !*result.AdminAccess {
				holders[id] = append(holders[id], heldResult{claim, result})
			}
		}
	}
	s.checkHolders(holders)
	s.checkCounters(holders)
	for _, pod := range s.allPods() {
		if pod.Spec.NodeName != "" {
			s.checkBound(pod, claims)
		}
	}
}

// asks tells whether the claim has the request, or "request/subrequest".
func asks(claim *resourceapi.ResourceClaim, name string) bool {
	for _, request := range claim.Spec.Devices.Requests {
		if request.Exactly != nil && request.Name == name {
			return true
		}
		for _, sub := range request.FirstAvailable {
			if request.Name+"/"+sub.Name == name {
				return true
			}
		}
	}
	return false
}

// checkBound checks that a running pod has its claims, and on its node.
func (s *simulation) checkBound(pod *corev1.Pod, claims map[string]*resourceapi.ResourceClaim) {
	s.Helper()
	var names []string
	for _, reference := range pod.Spec.ResourceClaims {
		if reference.ResourceClaimName != nil {
			names = append(names, *reference.ResourceClaimName)
		}
	}
	for _, status := range pod.Status.ResourceClaimStatuses {
		names = append(names, *status.ResourceClaimName)
	}
	if len(pod.Spec.Containers) > 0 {
		if pod.Status.ExtendedResourceClaimStatus == nil {
			s.failf("pod %s runs without a claim for its extended resources", pod.Name)
		}
		names = append(names, pod.Status.ExtendedResourceClaimStatus.ResourceClaimName)
	}
	for _, name := range names {
		claim := claims[name]
		if claim == nil || claim.Status.Allocation == nil || !slices.Contains(claim.Status.ReservedFor, consumer(pod)) {
			s.failf("pod %s runs without its claim %s", pod.Name, name)
		}
		if selector := claim.Status.Allocation.NodeSelector; selector != nil && len(selector.NodeSelectorTerms[0].MatchFields) > 0 &&
			selector.NodeSelectorTerms[0].MatchFields[0].Values[0] != pod.Spec.NodeName {
			s.failf("pod %s runs on %s, its claim %s is for %v", pod.Name, pod.Spec.NodeName, name, selector)
		}
	}
}
