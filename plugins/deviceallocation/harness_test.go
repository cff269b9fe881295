package deviceallocation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// harness is the plugin in a framework as the scheduler sets it up, on an API
// server in memory. It lives in a synctest bubble, in which settle waits until
// every event has been delivered.
type harness struct {
	*testing.T
	*api
	ctx       context.Context
	informers informers.SharedInformerFactory
	tracker   fwk.ResourceClaimTracker
	handle    fwk.Handle
	factory   frameworkruntime.PluginFactory
	plugin    *Plugin
	nodes     []fwk.NodeInfo
	// placed counts the pods of each group that have their place.
	placed placedPods

	// claimEvents and sliceEvents are where the scheduler gets its events from.
	claimEvents *assumecache.AssumeCache
	sliceEvents *tracker.Tracker
	// activated are the pods for which the plugin asked for another attempt.
	activated activations
	// recorder has the events for users.
	recorder *events.FakeRecorder
	// stop ends the plugin. It is called at the end of the test as well.
	stop func()
}

// run runs a test in a bubble, with a plugin that knows the objects.
func run(t *testing.T, objects []runtime.Object, test func(*harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newTestPlugin(t, objects...)) })
}

func newTestPlugin(t *testing.T, objects ...runtime.Object) *harness {
	t.Helper()
	var nodes []*corev1.Node
	for _, obj := range objects {
		if node, ok := obj.(*corev1.Node); ok {
			nodes = append(nodes, node)
		}
	}
	return startPlugin(t, newAPI(objects), nodes, func(*harness) {})
}

// startPlugin sets a plugin up on an API server that may have had another one
// before. watch runs before the informers start.
func startPlugin(t *testing.T, server *api, nodes []*corev1.Node, watch func(*harness)) *harness {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	h := &harness{T: t, ctx: ctx, api: server, recorder: events.NewFakeRecorder(1000)}
	h.informers = informers.NewSharedInformerFactory(h.client, 0)
	manager := h.manager()
	h.tracker = manager.ResourceClaims()
	h.placed = placedPods{}
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
		frameworkruntime.WithClientSet(h.client),
		frameworkruntime.WithInformerFactory(h.informers),
		frameworkruntime.WithEventRecorder(h.recorder),
		frameworkruntime.WithSharedDRAManager(manager),
		frameworkruntime.WithPodActivator(&h.activated),
		frameworkruntime.WithPodGroupManager(groupsOf{placed: h.placed}),
		frameworkruntime.WithSnapshotSharedLister(internalcache.NewTestSnapshotWithPodGroups(nil, nodes, server.podGroups())),
	)
	if err != nil {
		t.Fatalf("create framework: %v", err)
	}
	h.handle = handle
	h.stop = sync.OnceFunc(func() {
		cancel()
		frameworkruntime.WaitForShutdown(handle)
		h.informers.Shutdown()
	})
	t.Cleanup(h.stop)
	h.factory = Factory()
	plugin, err := h.factory(ctx, nil, handle)
	if err != nil {
		t.Fatalf("create plugin: %v", err)
	}
	h.plugin = plugin.(*Plugin)
	watch(h)
	h.informers.Start(ctx.Done())
	h.informers.WaitForCacheSync(ctx.Done())
	h.settle()
	for _, node := range nodes {
		h.addNode(node)
	}
	return h
}

// activations records what the scheduling queue is asked for.
type activations struct{ pods []string }

func (a *activations) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	for _, pod := range pods {
		a.pods = append(a.pods, pod.Name)
	}
}

// manager makes the scheduler's own bookkeeping of devices.
func (h *harness) manager() *dynamicresources.DefaultDRAManager {
	h.Helper()
	resources := h.informers.Resource().V1()
	slices, err := tracker.StartTracker(h.ctx, tracker.Options{
		EnableDeviceTaintRules: true,
		SliceInformer:          resources.ResourceSlices(),
		TaintInformer:          resources.DeviceTaintRules(),
		KubeClient:             h.client,
	})
	if err != nil {
		h.Fatalf("start tracker of slices: %v", err)
	}
	claims := assumecache.NewAssumeCache(klog.Background(), resources.ResourceClaims().Informer(), "resource claim", "", nil)
	h.claimEvents, h.sliceEvents = claims, slices
	manager := dynamicresources.NewDRAManager(h.ctx, claims, slices, h.informers)
	// The scheduler itself does this for a plugin that asks for class events.
	resolver, ok := manager.DeviceClassResolver().(cache.ResourceEventHandler)
	if !ok {
		h.Fatalf("resolver of classes is a %T, want an event handler", manager.DeviceClassResolver())
	}
	if _, err := resources.DeviceClasses().Informer().AddEventHandler(resolver); err != nil {
		h.Fatalf("watch classes: %v", err)
	}
	return manager
}

func (h *harness) addNode(node *corev1.Node) {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	h.nodes = append(h.nodes, info)
}

// settle waits until everybody has seen everything.
func (h *harness) settle() { synctest.Wait() }

func (h *harness) node(name string) fwk.NodeInfo {
	h.Helper()
	for _, node := range h.nodes {
		if node.Node().Name == name {
			return node
		}
	}
	h.Fatalf("there is no node %s", name)
	return nil
}

// claim returns a claim as the API server has it, or nil.
func (h *harness) claim(name string) *resourceapi.ResourceClaim {
	h.Helper()
	claim, err := h.client.ResourceV1().ResourceClaims(builders.Namespace).Get(h.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.Fatalf("get claim: %v", err)
	}
	return claim
}

// describe says in a line what a claim in the API server has.
func (h *harness) describe(name string) string {
	h.Helper()
	claim := h.claim(name)
	if claim == nil {
		return "gone"
	}
	return describeClaim(claim)
}

func describeClaim(claim *resourceapi.ResourceClaim) string {
	if claim.Status.Allocation == nil {
		return "free"
	}
	var text strings.Builder
	text.WriteString("allocated")
	for _, result := range claim.Status.Allocation.Devices.Results {
		fmt.Fprintf(&text, " %s/%s", result.Pool, result.Device)
	}
	for _, consumer := range claim.Status.ReservedFor {
		fmt.Fprintf(&text, ", for %s", consumer.Name)
	}
	return text.String()
}

// setStatus writes the status of a claim as another client would.
func (h *harness) setStatus(name string, change func(*resourceapi.ResourceClaimStatus)) *resourceapi.ResourceClaim {
	h.Helper()
	claims := h.client.ResourceV1().ResourceClaims(builders.Namespace)
	claim := h.claim(name)
	change(&claim.Status)
	claim, err := claims.UpdateStatus(h.ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		h.Fatalf("update status of claim %s: %v", name, err)
	}
	return claim
}

// holders lists who holds a device according to the ledger.
func (h *harness) holders(node, name string) []string {
	var holders []string
	for _, holder := range h.plugin.ledger.Holders(device.NewID(driver, node, name)) {
		text := holder.Name.Name
		if holder.Reserved {
			text += " (reserved)"
		}
		holders = append(holders, text)
	}
	return holders
}

// inFlight lists what the scheduler's tracker was told about a claim.
func (h *harness) inFlight(claim string) []string {
	allocation := h.tracker.GetPendingAllocation(types.UID("uid-of-" + claim))
	if allocation == nil {
		return nil
	}
	var devices []string
	for _, result := range allocation.Devices.Results {
		devices = append(devices, result.Pool+"/"+result.Device)
	}
	return devices
}

// attempt is one scheduling attempt of a pod.
type attempt struct {
	*harness
	pod   *corev1.Pod
	cycle fwk.CycleState
}

func (h *harness) attempt(pod *corev1.Pod) *attempt {
	return &attempt{harness: h, pod: pod, cycle: framework.NewCycleState()}
}

func (a *attempt) preFilter() (*fwk.PreFilterResult, *fwk.Status) {
	return a.plugin.PreFilter(a.ctx, a.cycle, a.pod, a.nodes)
}

func (a *attempt) filter(node string) *fwk.Status {
	a.Helper()
	return a.plugin.Filter(a.ctx, a.cycle, a.pod, a.node(node))
}

// search runs PreFilter and, on each node, Filter; it returns the status of
// PreFilter or those of the nodes.
func (a *attempt) search(nodes ...string) []string {
	a.Helper()
	if _, status := a.preFilter(); !status.IsSuccess() {
		return []string{text(status)}
	}
	var texts []string
	for _, node := range nodes {
		texts = append(texts, text(a.filter(node)))
	}
	return texts
}

// find runs PreFilter and Filter, which must succeed.
func (a *attempt) find(nodes ...string) *attempt {
	a.Helper()
	for _, status := range a.search(nodes...) {
		if status != "Success" {
			a.Fatalf("find devices: %s", status)
		}
	}
	return a
}

// scores returns the scores of some nodes.
func (a *attempt) scores(nodes ...fwk.NodeInfo) fwk.NodeScoreList {
	a.Helper()
	return a.normalize(a.rawScores(nodes...))
}

func (a *attempt) rawScores(nodes ...fwk.NodeInfo) fwk.NodeScoreList {
	a.Helper()
	scores := make(fwk.NodeScoreList, len(nodes))
	for i, node := range nodes {
		score, status := a.plugin.Score(a.ctx, a.cycle, a.pod, node)
		a.must(status)
		scores[i] = fwk.NodeScore{Name: node.Node().Name, Score: score}
	}
	return scores
}

func (a *attempt) normalize(scores fwk.NodeScoreList) fwk.NodeScoreList {
	a.Helper()
	a.must(a.plugin.NormalizeScore(a.ctx, a.cycle, a.pod, scores))
	return scores
}

func (a *attempt) reserve(node string) *fwk.Status {
	return a.plugin.Reserve(a.ctx, a.cycle, a.pod, node)
}

func (a *attempt) preBind(node string) *fwk.Status {
	return a.plugin.PreBind(a.ctx, a.cycle, a.pod, node)
}

func (a *attempt) unreserve(node string) { a.plugin.Unreserve(a.ctx, a.cycle, a.pod, node) }

func (a *attempt) postFilter() *fwk.Status {
	a.Helper()
	result, status := a.plugin.PostFilter(a.ctx, a.cycle, a.pod, nil)
	if result != nil {
		a.Errorf("PostFilter nominates %v, want nothing", result)
	}
	return status
}

// bind takes the attempt to the end of PreBind, which must succeed.
func (a *attempt) bind(node string) *attempt {
	a.Helper()
	a.find(node).must(a.reserve(node)).must(a.preBind(node))
	return a
}

// must ends the test unless the status is a success.
func (a *attempt) must(status *fwk.Status) *attempt {
	a.Helper()
	if !status.IsSuccess() {
		a.Fatalf("want success, got %s", text(status))
	}
	return a
}

// text writes a status as code: reasons.
func text(status *fwk.Status) string {
	if status.IsSuccess() {
		return "Success"
	}
	if message := status.Message(); message != "" {
		return status.Code().String() + ": " + message
	}
	return status.Code().String()
}

// expect compares and names what is compared.
func expect[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// expectAll is expect for lists.
func expectAll(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
