package decision

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/device-scheduler/device-scheduler/config"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation"
)

// The plugins that are compared.
const (
	Ours  = deviceallocation.Name
	Stock = names.DynamicResources
)

// Scheduler is kube-scheduler with one of the plugins. It makes decisions when
// it is asked to and never binds a pod. It is used by one goroutine.
type Scheduler struct {
	scheduler *scheduler.Scheduler
	profile   framework.Framework
	snapshot  *internalcache.Snapshot
	informers informers.SharedInformerFactory
	stop      context.CancelFunc
	logger    klog.Logger
}

// start starts a scheduler for a cluster and waits until it knows all of it.
// Close ends it.
func start(plugin string, stored *objects) (*Scheduler, error) {
	profile, err := profileWith(plugin)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Scheduler{snapshot: internalcache.NewEmptySnapshot(), stop: cancel, logger: klog.Background()}
	// The tracker of a clientset made in the other way does much more for each
	// object that is written, of which there are none here.
	client := fake.NewSimpleClientset(stored.stored...)
	s.informers = scheduler.NewInformerFactory(client, 0, nil)
	recorder := func(string) events.EventRecorderLogger { return events.NewFakeRecorder(0) }
	s.scheduler, err = scheduler.New(ctx, client, s.informers, nil, recorder,
		scheduler.WithProfiles(*profile),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{Ours: deviceallocation.Factory()}),
		scheduler.WithNodeInfoSnapshot(s.snapshot),
	)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("create scheduler: %w", err)
	}
	s.profile = s.scheduler.Profiles[profile.SchedulerName]
	s.informers.Start(ctx.Done())
	s.informers.WaitForCacheSync(ctx.Done())
	if err := s.scheduler.WaitForHandlersSync(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("wait for handlers: %w", err)
	}
	return s, nil
}

// Close ends the scheduler.
func (s *Scheduler) Close() {
	s.stop()
	frameworkruntime.WaitForShutdown(s.profile)
	s.informers.Shutdown()
}

// stockConfiguration is what kube-scheduler uses without a file.
const stockConfiguration = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{}]\n"

// profileWith returns a profile with the plugin, with the weight and the args
// that it is shipped with, and nothing else that can be left out.
func profileWith(plugin string) (*schedulerconfig.KubeSchedulerProfile, error) {
	configuration := []byte(stockConfiguration)
	if plugin == Ours {
		configuration = config.ReplaceDefault
	}
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode(configuration, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	shipped := obj.(*schedulerconfig.KubeSchedulerConfiguration).Profiles[0]
	profile := &schedulerconfig.KubeSchedulerProfile{SchedulerName: corev1.DefaultSchedulerName, Plugins: &schedulerconfig.Plugins{}}
	for _, enabled := range shipped.Plugins.MultiPoint.Enabled {
		switch enabled.Name {
		case plugin, names.PrioritySort, names.DefaultBinder:
			profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, enabled)
		}
	}
	for _, args := range shipped.PluginConfig {
		if args.Name == plugin {
			profile.PluginConfig = append(profile.PluginConfig, args)
		}
	}
	return profile, nil
}

// add puts a pod into the queue.
func (s *Scheduler) add(ctx context.Context, pod *corev1.Pod) {
	s.scheduler.SchedulingQueue.Add(ctx, pod)
}

// decision is what the scheduler decided about a pod.
type decision struct {
	pod *corev1.Pod
	// state and assumed are those of a pod that got a node; state is nil if it
	// got none.
	state   fwk.CycleState
	assumed *corev1.Pod
}

// decide takes the next pod out of the queue and decides where it runs, up to
// and including Reserve. It does what the scheduler's own loop does, whose parts
// before the binding are not exported as one. The error is that of something
// that went wrong, not of a pod that fits nowhere.
func (s *Scheduler) decide(ctx context.Context) (*decision, error) {
	entity, err := s.scheduler.NextEntity(s.logger)
	if err != nil {
		return nil, fmt.Errorf("take pod from queue: %w", err)
	}
	info, ok := entity.(*framework.QueuedPodInfo)
	if !ok {
		return nil, fmt.Errorf("take pod from queue: got a %T", entity)
	}
	state := framework.NewCycleState()
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	if err := s.scheduler.Cache.UpdateSnapshot(s.logger, s.snapshot); err != nil {
		return nil, fmt.Errorf("update snapshot of nodes: %w", err)
	}
	result, err := s.scheduler.SchedulePod(ctx, s.profile, state, info)
	if fit := (*framework.FitError)(nil); errors.As(err, &fit) {
		_, status := s.profile.RunPostFilterPlugins(ctx, state, info.Pod, fit.Diagnosis.NodeToStatus)
		if status.Code() == fwk.Error {
			return nil, fmt.Errorf("run PostFilter for pod %s: %w", info.Pod.Name, status.AsError())
		}
		return &decision{pod: info.Pod}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("schedule pod %s: %w", info.Pod.Name, err)
	}
	assumed := info.DeepCopy().Pod
	assumed.Spec.NodeName = result.SuggestedHost
	if err := s.scheduler.Cache.AssumePod(s.logger, assumed); err != nil {
		return nil, fmt.Errorf("assume pod %s: %w", info.Pod.Name, err)
	}
	if status := s.profile.RunReservePluginsReserve(ctx, state, assumed, result.SuggestedHost); !status.IsSuccess() {
		return nil, fmt.Errorf("reserve for pod %s: %w", info.Pod.Name, status.AsError())
	}
	return &decision{pod: info.Pod, state: state, assumed: assumed}, nil
}

// undo takes a decision back, as if the pod had never come.
func (s *Scheduler) undo(ctx context.Context, d *decision) error {
	s.scheduler.SchedulingQueue.Done(d.pod.UID)
	if d.assumed == nil {
		return nil
	}
	s.profile.RunReservePluginsUnreserve(ctx, d.state, d.assumed, d.assumed.Spec.NodeName)
	if err := s.scheduler.Cache.ForgetPod(s.logger, d.assumed); err != nil {
		return fmt.Errorf("forget pod %s: %w", d.pod.Name, err)
	}
	return nil
}
