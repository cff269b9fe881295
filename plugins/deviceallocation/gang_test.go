package deviceallocation

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// gang is the group "gang", which lists the given claims.
func gang(claims ...string) *schedulingapi.PodGroup {
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: builders.Namespace, Name: "gang", UID: "uid-of-gang"}}
	for _, name := range claims {
		group.Spec.ResourceClaims = append(group.Spec.ResourceClaims, schedulingapi.PodGroupResourceClaim{Name: name, ResourceClaimName: ptr.To(name)})
	}
	return group
}

// member is a pod of the group "gang".
func member(name string, claims ...string) *corev1.Pod {
	b := builders.Pod(name)
	for _, claim := range claims {
		b.Claim(claim)
	}
	pod := b.Obj()
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
	return pod
}

// forGang adds a reservation for the group.
func forGang(claim *resourceapi.ResourceClaim) {
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, *groupReference(gang()))
}

// everywhere is a pool of n GPUs that all nodes reach.
func everywhere(n int) *builders.SliceBuilder {
	return builders.Slice(driver, "rack").OnAllNodes().Devices(builders.DevicesNamed("gpu", n, nil)...)
}

// runGroups is run with the feature gates for groups and their claims.
func runGroups(t *testing.T, objects []runtime.Object, test func(*harness)) {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.GenericWorkload:           true,
		features.DRAWorkloadResourceClaims: true,
	})
	run(t, objects, test)
}

// podGroups lists the groups in the API server.
func (a *api) podGroups() []*schedulingapi.PodGroup {
	list, err := a.client.SchedulingV1beta1().PodGroups(builders.Namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	groups := make([]*schedulingapi.PodGroup, len(list.Items))
	for i := range list.Items {
		groups[i] = &list.Items[i]
	}
	return groups
}

// groupCycle is one cycle of the scheduler for the pods of a group.
type groupCycle struct {
	*harness
	cycle    *framework.CycleState
	attempts []*attempt
	nodes    []string
}

func (h *harness) groupCycle() *groupCycle {
	return &groupCycle{harness: h, cycle: framework.NewCycleState()}
}

// attempt begins the attempt of a pod in the cycle.
func (g *groupCycle) attempt(pod *corev1.Pod) *attempt {
	a := g.harness.attempt(pod)
	a.cycle.(*framework.CycleState).SetPodGroupSchedulingCycle(g.cycle)
	return a
}

// try finds devices for a pod and reserves them.
func (g *groupCycle) try(node string, pods ...*corev1.Pod) *groupCycle {
	g.Helper()
	for _, pod := range pods {
		a := g.attempt(pod).find(node)
		a.must(a.reserve(node))
		g.attempts, g.nodes = append(g.attempts, a), append(g.nodes, node)
	}
	return g
}

// revert takes everything back, the last pod first.
func (g *groupCycle) revert() *groupCycle {
	for i, a := range slices.Backward(g.attempts) {
		a.unreserve(g.nodes[i])
	}
	return g
}

// replay reserves again what was tried, outside of the cycle.
func (g *groupCycle) replay() []string {
	var texts []string
	for i, a := range g.attempts {
		a.cycle.(*framework.CycleState).SetPodGroupSchedulingCycle(nil)
		status := a.reserve(g.nodes[i])
		if !status.IsSuccess() {
			a.unreserve(g.nodes[i])
		}
		texts = append(texts, text(status))
	}
	return texts
}

// preBindAll runs PreBind of all pods at once.
func (g *groupCycle) preBindAll() []string {
	texts := make([]string, len(g.attempts))
	done := make(chan struct{})
	for i, a := range g.attempts {
		go func() {
			texts[i] = text(a.preBind(g.nodes[i]))
			done <- struct{}{}
		}()
	}
	for range g.attempts {
		<-done
	}
	return texts
}

// postFilter runs PodGroupPostFilter for pods that were left over.
func (g *groupCycle) postFilter(group *schedulingapi.PodGroup, pods ...*corev1.Pod) string {
	g.Helper()
	result, status := g.plugin.PodGroupPostFilter(g.ctx, g.cycle, &framework.PodGroupInfo{
		Type: fwk.PodGroupKeyType, Namespace: group.Namespace, Name: group.Name, PodGroup: group, UnscheduledPods: pods,
	}, nil)
	if result != nil {
		g.Errorf("PodGroupPostFilter nominates %v, want nothing", result)
	}
	return text(status)
}

func times(n int, text string) []string { return slices.Repeat([]string{text}, n) }

// inFlightNow lists the claims with an allocation in flight.
func (h *harness) inFlightNow() []string {
	var claims []string
	h.plugin.inFlight.mutex.Lock()
	defer h.plugin.inFlight.mutex.Unlock()
	for uid := range h.plugin.inFlight.byClaim {
		claims = append(claims, string(uid))
	}
	for uid := range h.plugin.inFlight.holds {
		if h.plugin.inFlight.byClaim[uid] == nil {
			claims = append(claims, "only held: "+string(uid))
		}
	}
	slices.Sort(claims)
	return claims
}

// gangTemplate is the group "gang" with a claim from a template.
func gangTemplate(name, template string) *schedulingapi.PodGroup {
	group := gang()
	group.Spec.ResourceClaims = []schedulingapi.PodGroupResourceClaim{{Name: name, ResourceClaimTemplateName: ptr.To(template)}}
	return group
}

// placedPods is what the scheduler's cache knows about groups: how many pods of
// each have a place, by name.
type placedPods map[string]int

type placedState struct {
	fwk.PodGroupState
	pods int
}

// groupsOf is a PodGroupManager that knows nothing else.
type groupsOf struct {
	fwk.PodGroupManager
	placed placedPods
}

func (g groupsOf) PodGroupStates() fwk.PodGroupStateLister { return g.placed }

func (p placedPods) Get(_, name string) (fwk.PodGroupState, error) {
	return placedState{pods: p[name]}, nil
}

func (s placedState) ScheduledPodsCount() int { return s.pods }
