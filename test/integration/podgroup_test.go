package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// podGroup is a gang of so many pods.
func podGroup(name string, minCount int32) *schedulingapi.PodGroup {
	return &schedulingapi.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: schedulingapi.PodGroupSpec{SchedulingPolicy: schedulingapi.PodGroupSchedulingPolicy{
			Gang: &schedulingapi.GangSchedulingPolicy{MinCount: minCount},
		}},
	}
}

// member puts a pod into a group.
func member(pod *builders.PodBuilder, group string) *corev1.Pod {
	p := pod.Obj()
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
	return p
}

// template makes claims for one GPU.
func template(e *harness.Env, name string) *resourceapi.ResourceClaimTemplate {
	return &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: builders.Claim("", builders.Request("r", e.In("gpu"))).Obj().Spec},
	}
}

// A gang has one claim for all of its pods, made from a template of the group,
// beside those of the pods. It is reserved for the group and goes with it.
func TestPodGroupClaim(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	group := podGroup("gang", 3)
	group.Spec.ResourceClaims = []schedulingapi.PodGroupResourceClaim{{Name: "shared", ResourceClaimTemplateName: ptr.To("template")}}
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(), gpus(e, "b", 4).Obj(), template(e, "template"), group)
	for i := range 3 {
		e.Create(member(builders.Pod(fmt.Sprint("pod-", i)).ClaimTemplate("shared", "template", "").ClaimTemplate("own", "template", ""), "gang"))
	}
	claims := make(map[string]bool)
	for i := range 3 {
		name := fmt.Sprint("pod-", i)
		e.Runs(name, "b") // node a has no room for a pod with two devices
		claims[e.ClaimOf(name, "shared")] = true
	}
	if len(claims) != 1 {
		t.Fatalf("the pods use the claims %v, want one for all of them", claims)
	}
	shared := e.Claim(e.ClaimOf("pod-0", "shared"))
	if consumers := shared.Status.ReservedFor; len(consumers) != 1 || consumers[0].Resource != "podgroups" ||
		consumers[0].APIGroup != "scheduling.k8s.io" || consumers[0].Name != "gang" {
		t.Errorf("the claim is reserved for %v, want the group", consumers)
	}
	for i := range 3 {
		e.DeletePod(fmt.Sprint("pod-", i))
	}
	if err := e.Client.SchedulingV1beta1().PodGroups(e.Namespace).Delete(t.Context(), "gang", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.OnlyClaims()
}

// The pods of a group share a claim that the group does not know: it is reserved
// for each of them, whether they must run together or not.
func TestPodGroupSharedClaim(t *testing.T) {
	basic := podGroup("group", 0)
	basic.Spec.SchedulingPolicy = schedulingapi.PodGroupSchedulingPolicy{Basic: &schedulingapi.BasicSchedulingPolicy{}}
	for name, tc := range map[string]struct {
		group *schedulingapi.PodGroup
		pods  int
	}{
		"2 pods that must all run":   {podGroup("group", 2), 2},
		"20 pods that must all run":  {podGroup("group", 20), 20},
		"5 pods of which 2 must run": {podGroup("group", 2), 5},
		"2 pods that may run alone":  {basic.DeepCopy(), 2},
		"20 pods that may run alone": {basic.DeepCopy(), 20},
	} {
		t.Run(name, func(t *testing.T) {
			e := env(t)
			e.Nodes("a")
			e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(),
				builders.Claim("shared", builders.Request("r", e.In("gpu"))).Obj(), tc.group)
			for i := range tc.pods {
				e.Create(member(builders.Pod(fmt.Sprint("pod-", i)).Claim("shared"), "group"))
			}
			for i := range tc.pods {
				e.Runs(fmt.Sprint("pod-", i), "a")
			}
			if n := len(e.Claim("shared").Status.ReservedFor); n != tc.pods {
				t.Errorf("the claim has %d consumers, want %d", n, tc.pods)
			}
		})
	}
}

// Pods of a gang that share a device of one node cannot run on two nodes: none
// of them does, and the device stays free for others.
func TestPodGroupOnDifferentNodes(t *testing.T) {
	e := env(t)
	e.Nodes("a", "b")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 1).Obj(),
		builders.Claim("shared", builders.Request("r", e.In("gpu"))).Obj(), podGroup("gang", 2))
	for i, node := range []string{"a", "b"} {
		pod := member(builders.Pod(fmt.Sprint("pod-", i)).Claim("shared"), "gang")
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: e.OnNode(node)}}
		e.Create(pod)
	}
	for i := range 2 {
		e.Decided(fmt.Sprint("pod-", i))
	}
	e.Create(builders.Claim("other", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("single").Claim("other").Obj())
	e.Runs("single", "a")
	for i := range 2 {
		if node := e.Pod(fmt.Sprint("pod-", i)).Spec.NodeName; node != "" {
			t.Errorf("pod-%d runs on %s, although the other one cannot run", i, node)
		}
	}
}

// A gang that does not fit takes no device. It runs when there is enough.
func TestPodGroupWaits(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 2).Named(e.In("a")).Obj(), template(e, "template"), podGroup("gang", 3))
	for i := range 3 {
		e.Create(member(builders.Pod(fmt.Sprint("pod-", i)).ClaimTemplate("own", "template", ""), "gang"))
	}
	for i := range 3 {
		e.Decided(fmt.Sprint("pod-", i))
	}
	// What the gang does not use is there for others.
	e.Create(builders.Claim("both", builders.Request("r", e.In("gpu")).Count(2)).Obj(), builders.Pod("single").Claim("both").Obj())
	e.Runs("single", "a")
	e.DeletePod("single")
	e.UpdateSlice(e.In("a"), func(slice *resourceapi.ResourceSlice) {
		slice.Spec.Devices = append(slice.Spec.Devices, *builders.Device("gpu-2").Obj())
	})
	for i := range 3 {
		e.Runs(fmt.Sprint("pod-", i), "a")
	}
}

// Topology-aware scheduling tries one rack after the other, with devices.
func TestPodGroupTopology(t *testing.T) {
	e := env(t)
	racks := map[string]string{"a": "one", "b": "two", "c": "two"}
	for name, rack := range racks {
		e.Create(builders.Node(e.In(name), e.Name+"/rack", rack))
		e.Create(gpus(e, name, 1).Obj())
	}
	e.NodesReady("a", "b", "c")
	group := podGroup("gang", 2)
	group.Spec.SchedulingConstraints = &schedulingapi.PodGroupSchedulingConstraints{
		Topology: []schedulingapi.TopologyConstraint{{Key: e.Name + "/rack"}},
	}
	e.Create(class(e, "gpu").Obj(), template(e, "template"), group)
	nodes := make(map[string]bool)
	for i := range 2 {
		e.Create(member(builders.Pod(fmt.Sprint("pod-", i)).ClaimTemplate("own", "template", ""), "gang"))
	}
	for i := range 2 {
		nodes[e.Runs(fmt.Sprint("pod-", i), "").Spec.NodeName] = true
	}
	if !nodes[e.In("b")] || !nodes[e.In("c")] {
		t.Errorf("the gang runs on %v, want the nodes of rack two", nodes)
	}
}
