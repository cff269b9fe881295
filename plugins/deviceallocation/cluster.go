package deviceallocation

import (
	"sync"
	"sync/atomic"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/dynamic-resource-allocation/cel"
	fwk "k8s.io/kube-scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/selector"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

// cluster is what all profiles of a scheduler process know about devices.
type cluster struct {
	inventory *inventory.Inventory
	ledger    *ledger.Ledger
	feed      *feed
	compiler  *selector.Compiler
	// inFlight and turns order what attempts do with the same claim.
	inFlight *inFlight
	turns    turns
	features device.Features
	failed   failedDevices
	// verdicts has what was found on nodes, attempts numbers the attempts that
	// look for something.
	verdicts *verdict.Cache
	attempts atomic.Uint64
}

// lazyCluster makes the cluster when the first profile is set up, since only
// then there are informers.
type lazyCluster struct {
	mutex   sync.Mutex
	cluster *cluster
}

func (l *lazyCluster) get(handle fwk.Handle) (*cluster, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.cluster != nil {
		return l.cluster, nil
	}
	features := deviceFeatures(plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	c := &cluster{
		inventory: inventory.New(features),
		ledger:    ledger.New(),
		verdicts:  verdict.New(verdict.DefaultLimit),
		features:  features,
		compiler: selector.NewCompiler(cel.Features{
			EnableConsumableCapacity: features.ConsumableCapacity,
			EnableListTypeAttributes: features.ListTypeAttributes,
		}),
	}
	c.inFlight = newInFlight(c.inventory, c.ledger)
	var err error
	if c.feed, err = newFeed(handle, c.inventory, c.inFlight, c.verdicts); err != nil {
		return nil, err
	}
	l.cluster = c
	return c, nil
}
