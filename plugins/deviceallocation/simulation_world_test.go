package deviceallocation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const nicDriver = "nic.example.com"

// simulatedClasses are the classes of the drivers.
var (
	simulatedClasses = []string{"gpu", "nic", "partition", "port"}
	classDrivers     = map[string]string{"gpu": driver, "nic": nicDriver, "partition": partitionDriver, "port": portDriver}
)

// simulatedPool is what a driver publishes under one name.
type simulatedPool struct {
	driver, name string
	local        bool
	generation   int64
	// rest is the second slice of a generation, not published yet.
	rest *resourceapi.ResourceSlice
}

func simulatedPools(nodes int) []*simulatedPool {
	var pools []*simulatedPool
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		pools = append(pools, &simulatedPool{driver: driver, name: name, local: true}, &simulatedPool{driver: nicDriver, name: name, local: true})
	}
	for i := range 2 {
		name := fmt.Sprintf("node-%d", i)
		pools = append(pools, &simulatedPool{driver: partitionDriver, name: name, local: true}, &simulatedPool{driver: portDriver, name: name, local: true})
	}
	return append(pools, &simulatedPool{driver: portDriver, name: "fabric"}, &simulatedPool{driver: nicDriver, name: "fabric"}, &simulatedPool{driver: driver, name: "chassis"})
}

func simulatedClass(name string, variant int) *resourceapi.DeviceClass {
	selected := classDrivers[name]
	c := builders.Class(name).Select(fmt.Sprintf("device.driver == %q", selected))
	if variant == 1 {
		c.Select(fmt.Sprintf(`device.attributes[%q].model == "a"`, selected))
	}
	class := c.Obj()
	if name == "gpu" {
		class.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	}
	return class
}

// anyPool is one that pods ask for.
func (s *simulation) anyPool() *simulatedPool {
	pools := s.pools
	if s.crowded {
		pools = slices.DeleteFunc(slices.Clone(pools), func(p *simulatedPool) bool { return p.driver != partitionDriver && p.driver != portDriver })
	}
	return pools[s.random.IntN(len(pools))]
}

// publish writes a pool anew, perhaps in a new generation, perhaps in two
// slices of which the second one comes later.
func (s *simulation) publish(pool *simulatedPool) string {
	if pool.rest != nil {
		s.putSlice(pool.rest)
		pool.rest = nil
		return fmt.Sprintf("publish the rest of %s %s", pool.driver, pool.name)
	}
	switch pool.driver {
	case partitionDriver:
		return s.publishPartitions(pool)
	case portDriver:
		return s.publishPorts(pool)
	}
	pool.generation++
	first := s.slice(pool, "0", 1+s.random.IntN(3))
	if s.random.IntN(4) == 0 {
		first.Spec.Pool.ResourceSliceCount = 2
		pool.rest = s.slice(pool, "1", 1)
		pool.rest.Spec.Pool.ResourceSliceCount = 2
	}
	s.putSlice(first)
	return fmt.Sprintf("publish %s %s generation %d: %d devices of %d slices", pool.driver, pool.name, pool.generation,
		len(first.Spec.Devices), first.Spec.Pool.ResourceSliceCount)
}

// emptySlice reaches the nodes that the pool is for.
func emptySlice(pool *simulatedPool, suffix string) *builders.SliceBuilder {
	b := builders.Slice(pool.driver, pool.name).Named(pool.driver + "-" + pool.name + "-" + suffix).Generation(pool.generation)
	switch {
	case pool.local:
		b.OnNode(pool.name)
	case pool.name == "fabric":
		b.OnAllNodes()
	default:
		b.OnNodesWith("zone", "a")
	}
	return b
}

func (s *simulation) slice(pool *simulatedPool, suffix string, n int) *resourceapi.ResourceSlice {
	b := emptySlice(pool, suffix)
	b.Devices(builders.DevicesNamed("dev-"+suffix, n, func(i int, d *builders.DeviceBuilder) {
		d.Attribute("model", []string{"a", "b"}[s.random.IntN(2)]).Attribute("numa", s.random.IntN(2))
		if s.random.IntN(5) == 0 {
			d.Conditions([]string{attached}, []string{broken})
		}
		if s.random.IntN(8) == 0 {
			d.Taint("sick", resourceapi.DeviceTaintEffectNoSchedule)
		}
	})...)
	return b.Obj()
}

func (s *simulation) putSlice(slice *resourceapi.ResourceSlice) {
	for _, d := range slice.Spec.Devices {
		s.existed[device.NewID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name)] = true
	}
	client := s.client.ResourceV1().ResourceSlices()
	current, err := client.Get(s.T.Context(), slice.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(s.T.Context(), slice, metav1.CreateOptions{})
		s.must(err)
		return
	}
	s.must(err)
	current.Spec = slice.Spec
	_, err = client.Update(s.T.Context(), current, metav1.UpdateOptions{})
	s.must(err)
}

// taint adds a taint to a device of a slice, or takes all of them away.
func (s *simulation) taint() string {
	slice := pick(s.random, s.slicesOfDevices())
	if slice == nil {
		return ""
	}
	d := &slice.Spec.Devices[s.random.IntN(len(slice.Spec.Devices))]
	if d.Taints == nil {
		d.Taints = []resourceapi.DeviceTaint{{Key: "sick", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	} else {
		d.Taints = nil
	}
	s.putSlice(slice)
	return fmt.Sprintf("taints of %s in %s: %d", d.Name, slice.Name, len(d.Taints))
}

// withdraw deletes a slice.
func (s *simulation) withdraw() string {
	slice := pick(s.random, s.allSlices())
	if slice == nil {
		return ""
	}
	s.must(s.client.ResourceV1().ResourceSlices().Delete(s.T.Context(), slice.Name, metav1.DeleteOptions{}))
	return "withdraw " + slice.Name
}

// rule adds a taint rule or takes it away.
func (s *simulation) rule() string {
	client := s.client.ResourceV1().DeviceTaintRules()
	name := fmt.Sprintf("rule-%d", s.random.IntN(2))
	if _, err := client.Get(s.T.Context(), name, metav1.GetOptions{}); err == nil {
		s.must(client.Delete(s.T.Context(), name, metav1.DeleteOptions{}))
		return "delete taint rule " + name
	}
	pool := s.pools[s.random.IntN(len(s.pools))]
	rule := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	rule.Spec.DeviceSelector = &resourceapi.DeviceTaintSelector{Driver: &pool.driver, Pool: &pool.name}
	rule.Spec.Taint = resourceapi.DeviceTaint{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}
	_, err := client.Create(s.T.Context(), rule, metav1.CreateOptions{})
	s.must(err)
	return fmt.Sprintf("taint rule %s for %s %s", name, pool.driver, pool.name)
}

// class deletes, creates or changes a class.
func (s *simulation) class() string {
	client := s.client.ResourceV1().DeviceClasses()
	name := s.className()
	variant := s.random.IntN(2)
	current, err := client.Get(s.T.Context(), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(s.T.Context(), simulatedClass(name, variant), metav1.CreateOptions{})
		s.must(err)
		return fmt.Sprintf("create class %s, variant %d", name, variant)
	case s.random.IntN(4) == 0:
		s.must(client.Delete(s.T.Context(), name, metav1.DeleteOptions{}))
		return "delete class " + name
	}
	current.Spec = simulatedClass(name, variant).Spec
	_, err = client.Update(s.T.Context(), current, metav1.UpdateOptions{})
	s.must(err)
	return fmt.Sprintf("change class %s to variant %d", name, variant)
}

// label moves a node into the zone of the shared pool, or out of it.
func (s *simulation) label() string {
	node := pick(s.random, s.allNodes())
	zone := map[string]string{"a": "b", "b": "a"}[node.Labels["zone"]]
	node.Labels["zone"] = zone
	_, err := s.client.CoreV1().Nodes().Update(s.T.Context(), node, metav1.UpdateOptions{})
	s.must(err)
	return fmt.Sprintf("node %s moves to zone %s", node.Name, zone)
}

// control does what the controller-manager does for claims.
func (s *simulation) control() string {
	pods := make(map[types.UID]*corev1.Pod)
	for _, pod := range s.allPods() {
		pods[pod.UID] = pod
		s.generate(pod)
	}
	claims := s.client.ResourceV1().ResourceClaims(builders.Namespace)
	for _, claim := range s.allClaims() {
		if owner := metav1.GetControllerOf(claim); owner != nil && pods[owner.UID] == nil && claim.DeletionTimestamp == nil {
			s.must(claims.Delete(s.T.Context(), claim.Name, metav1.DeleteOptions{}))
			claim = s.lookUp(claim.Name)
		}
		if claim == nil {
			continue
		}
		before := len(claim.Status.ReservedFor)
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
			return pods[c.UID] == nil
		})
		left := len(claim.Status.ReservedFor)
		var err error
		if left < before || claim.DeletionTimestamp != nil && left == 0 && claim.Status.Allocation != nil {
			if left == 0 {
				claim.Status.Allocation, claim.Status.Devices = nil, nil
			}
			claim, err = claims.UpdateStatus(s.T.Context(), claim, metav1.UpdateOptions{})
			s.must(err)
		}
		if left == 0 && claim.Status.Allocation == nil && len(claim.Finalizers) > 0 && (before > 0 || claim.DeletionTimestamp != nil) {
			claim.Finalizers = nil
			_, err = claims.Update(s.T.Context(), claim, metav1.UpdateOptions{})
			s.must(err)
		}
	}
	return "controller-manager"
}

// generate makes the claims of a pod's templates.
func (s *simulation) generate(pod *corev1.Pod) {
	for _, reference := range pod.Spec.ResourceClaims {
		if reference.ResourceClaimTemplateName == nil || len(pod.Status.ResourceClaimStatuses) > 0 {
			continue
		}
		name := pod.Name + "-generated"
		claim := builders.Claim(name, builders.Request("main", *reference.ResourceClaimTemplateName)).Obj()
		claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}}
		_, err := s.client.ResourceV1().ResourceClaims(builders.Namespace).Create(s.T.Context(), claim, metav1.CreateOptions{})
		s.must(err)
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: reference.Name, ResourceClaimName: &name}}
		_, err = s.client.CoreV1().Pods(builders.Namespace).UpdateStatus(s.T.Context(), pod, metav1.UpdateOptions{})
		s.must(err)
	}
}

func (s *simulation) lookUp(name string) *resourceapi.ResourceClaim {
	claim, err := s.client.ResourceV1().ResourceClaims(builders.Namespace).Get(s.T.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return claim
}

// The lists are in the order of names, without what is random in these.

func (s *simulation) allClaims() []*resourceapi.ResourceClaim {
	list, err := s.client.ResourceV1().ResourceClaims(builders.Namespace).List(s.T.Context(), metav1.ListOptions{})
	s.must(err)
	return sorted(list.Items, func(c *resourceapi.ResourceClaim) string { return stableName(c.Name) })
}

func (s *simulation) allPods() []*corev1.Pod {
	list, err := s.client.CoreV1().Pods(builders.Namespace).List(s.T.Context(), metav1.ListOptions{})
	s.must(err)
	return sorted(list.Items, func(p *corev1.Pod) string { return p.Name })
}

func (s *simulation) allNodes() []*corev1.Node {
	list, err := s.client.CoreV1().Nodes().List(s.T.Context(), metav1.ListOptions{})
	s.must(err)
	return sorted(list.Items, func(n *corev1.Node) string { return n.Name })
}

func (s *simulation) allSlices() []*resourceapi.ResourceSlice {
	list, err := s.client.ResourceV1().ResourceSlices().List(s.T.Context(), metav1.ListOptions{})
	s.must(err)
	return sorted(list.Items, func(slice *resourceapi.ResourceSlice) string { return slice.Name })
}

func sorted[T any](items []T, name func(*T) string) []*T {
	result := make([]*T, len(items))
	for i := range items {
		result[i] = &items[i]
	}
	slices.SortFunc(result, func(a, b *T) int { return cmp.Compare(name(a), name(b)) })
	return result
}

func stableName(name string) string {
	if at := strings.Index(name, "-extended-resources-"); at >= 0 {
		return name[:at] + "-extended-resources"
	}
	return name
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
