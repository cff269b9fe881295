package decision

import (
	"context"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation"
)

// Memory is what the heap of a scheduler holds, in bytes.
type Memory struct {
	// Informers is what informers and the scheduler's own tracker of claims and
	// slices hold, which are there with any plugin.
	Informers int64
	// Plugin is what our plugin adds when it knows the whole cluster and has
	// looked at all nodes for a number of pods that ask for different devices.
	Plugin int64
}

// measureMemory fills the informers with a cluster, then the plugin, and looks
// at the heap after each. pods must ask for different devices, or caches that
// know pods by what they ask for stay small.
func measureMemory(objects *objects) (Memory, error) {
	ctx, cancel := context.WithCancel(context.Background())
	var memory Memory
	client := fake.NewSimpleClientset(objects.stored...)
	stored := heap()
	factory := scheduler.NewInformerFactory(client, 0, nil)
	defer factory.Shutdown()
	defer cancel() // first
	manager, err := newManager(ctx, client, factory)
	if err != nil {
		return memory, err
	}
	nodes := factory.Core().V1().Nodes().Lister()
	snapshot := internalcache.NewEmptySnapshot()
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithEventRecorder(events.NewFakeRecorder(0)),
		frameworkruntime.WithSharedDRAManager(manager),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
	)
	if err != nil {
		return memory, fmt.Errorf("create framework: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	var infos []fwk.NodeInfo
	list, err := nodes.List(labels.Everything())
	if err != nil {
		return memory, fmt.Errorf("list nodes: %w", err)
	}
	for _, node := range list {
		info := framework.NewNodeInfo()
		info.SetNode(node)
		infos = append(infos, info)
	}
	filled := heap()
	memory.Informers = filled - stored
	profile, err := profileWith(Ours)
	if err != nil {
		return memory, err
	}
	plugin, err := deviceallocation.Factory()(ctx, profile.PluginConfig[0].Args, handle)
	if err != nil {
		return memory, fmt.Errorf("create plugin: %w", err)
	}
	for _, pod := range objects.pods {
		if err := look(ctx, plugin, pod, infos); err != nil {
			return memory, err
		}
	}
	memory.Plugin = heap() - filled
	// What was there before must be there still, or it would seem to be less.
	for _, kept := range []any{objects, client, manager, handle, plugin, infos, list} {
		runtime.KeepAlive(kept)
	}
	return memory, nil
}

// newManager makes the scheduler's own bookkeeping of devices, as the scheduler
// does it.
func newManager(ctx context.Context, client *fake.Clientset, factory informers.SharedInformerFactory) (fwk.SharedDRAManager, error) {
	resources := factory.Resource().V1()
	slices, err := tracker.StartTracker(ctx, tracker.Options{
		EnableDeviceTaintRules:   true,
		EnableConsumableCapacity: true,
		SliceInformer:            resources.ResourceSlices(),
		TaintInformer:            resources.DeviceTaintRules(),
		KubeClient:               client,
	})
	if err != nil {
		return nil, fmt.Errorf("start tracker of slices: %w", err)
	}
	claims := assumecache.NewAssumeCache(klog.Background(), resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	return dynamicresources.NewDRAManager(ctx, claims, slices, factory), nil
}

// look lets the plugin look for devices on all nodes it names.
func look(ctx context.Context, plugin fwk.Plugin, pod *corev1.Pod, nodes []fwk.NodeInfo) error {
	state := framework.NewCycleState()
	result, status := plugin.(fwk.PreFilterPlugin).PreFilter(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return fmt.Errorf("run PreFilter for pod %s: %w", pod.Name, status.AsError())
	}
	fits := 0
	for _, node := range nodes {
		if !result.AllNodes() && !result.NodeNames.Has(node.Node().Name) {
			continue
		}
		if plugin.(fwk.FilterPlugin).Filter(ctx, state, pod, node).IsSuccess() {
			fits++
		}
	}
	if fits == 0 {
		return fmt.Errorf("pod %s fits nowhere", pod.Name)
	}
	return nil
}

// heap returns the bytes that are in use after everything else is collected.
// What has a finalizer goes in the second cycle.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
