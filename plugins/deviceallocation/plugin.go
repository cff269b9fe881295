package deviceallocation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/device-scheduler/device-scheduler/config"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/objective"
)

// Name is the name of the plugin in scheduler profiles.
const Name = config.PluginName

// cleanupTimeout bounds what is done for a pod after its attempt has failed.
const cleanupTimeout = 30 * time.Second

// Plugin is the DeviceAllocation plugin of one profile. The framework calls
// its methods from several goroutines.
type Plugin struct {
	*cluster
	// lifetime ends with the scheduler; what outlasts an attempt depends on it.
	lifetime context.Context
	handle   fwk.Handle
	claims   fwk.ResourceClaimTracker
	classes  fwk.DeviceClassLister
	resolver fwk.DeviceClassResolver
	writer   *claimwriter.Writer
	nodes    *candidates
	counters *counters
	// waiting are the pods that fitted nowhere; the rest is what hints have found
	// out about the latest events.
	waiting   waitingPods
	lastClaim latest[claimEvent]
	lastSlice latest[poolEvent]
	lastNode  latest[poolEvent]
	// profile is the name of the profile; what searches find depends on its args.
	profile string

	options       allocator.Options
	weights       objective.Weights
	filterTimeout time.Duration
	// bindingTimeout is how long devices have to get ready.
	bindingTimeout time.Duration
	gates          plfeature.Features
}

var (
	_ fwk.PreEnqueuePlugin         = &Plugin{}
	_ fwk.PreFilterPlugin          = &Plugin{}
	_ fwk.FilterPlugin             = &Plugin{}
	_ fwk.PostFilterPlugin         = &Plugin{}
	_ fwk.PodGroupPostFilterPlugin = &Plugin{}
	_ fwk.ScorePlugin              = &Plugin{}
	_ fwk.ReservePlugin            = &Plugin{}
	_ fwk.PreBindPlugin            = &Plugin{}
	_ fwk.EnqueueExtensions        = &Plugin{}
	_ fwk.SignPlugin               = &Plugin{}
)

// Factory returns the factory of the plugin for one scheduler process
// (k8s.io/kubernetes/cmd/kube-scheduler/app WithPlugin). The plugins of several
// profiles share one inventory and one ledger: what one of them reserves is not
// free for the others. Errors of the factory are about the args, or about a
// scheduler without DRA.
func Factory() frameworkruntime.PluginFactory {
	var shared lazyCluster
	return func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		return newPlugin(ctx, args, handle, &shared)
	}
}

func newPlugin(ctx context.Context, args runtime.Object, handle fwk.Handle, shared *lazyCluster) (fwk.Plugin, error) {
	decoded, err := config.Decode(args)
	if err != nil {
		return nil, fmt.Errorf("decode args of plugin %s in profile %s: %w", Name, handle.ProfileName(), err)
	}
	manager := handle.SharedDRAManager()
	if manager == nil {
		return nil, errors.New("plugin " + Name + " needs the feature gate DynamicResourceAllocation")
	}
	cluster, err := shared.get(handle)
	if err != nil {
		return nil, fmt.Errorf("watch devices and claims: %w", err)
	}
	pl := &Plugin{
		cluster:        cluster,
		lifetime:       ctx,
		handle:         handle,
		claims:         manager.ResourceClaims(),
		classes:        manager.DeviceClasses(),
		resolver:       manager.DeviceClassResolver(),
		waiting:        newWaitingPods(),
		profile:        handle.ProfileName(),
		writer:         claimwriter.New(handle.ClientSet(), writeObserver{}, cleanupTimeout),
		filterTimeout:  decoded.FilterTimeout.Duration,
		bindingTimeout: decoded.BindingTimeout.Duration,
		gates:          plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate),
	}
	if !pl.gates.EnableDRASchedulerFilterTimeout {
		pl.filterTimeout = 0
	}
	pl.counters = registerMetrics()
	pl.configure(decoded)
	pl.nodes = newCandidates(pl.verdicts, pl.profile, pl.options.FailOnSelectorError)
	return pl, nil
}

// configure turns the args into what the core understands.
func (pl *Plugin) configure(args *config.DeviceAllocationArgs) {
	pl.options = allocator.Options{
		StepBudget:          int(args.StepBudget),
		FailOnSelectorError: args.SelectorErrors == config.SelectorErrorsFail,
	}
	pl.weights = objective.Weights{BestFit: int64(args.Objective.BestFitWeight), Packing: int64(args.Objective.PackingWeight)}
	switch args.Objective.Strategy {
	case config.StrategyNone:
		pl.weights = objective.Weights{}
		return
	case config.StrategySpread:
		pl.weights.Packing = -pl.weights.Packing
	}
	pl.options.Objective = objective.Order{}
	if pl.weights.BestFit > 0 {
		pl.options.Objective = objective.BestFit{}
	}
	if pl.weights.Packing <= 0 {
		pl.options.Objective = objective.Spread{Objective: pl.options.Objective}
	}
}

// Name returns the name of the plugin in scheduler profiles.
func (pl *Plugin) Name() string { return Name }
