package deviceallocation

import (
	"errors"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	schedmetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

const subsystem = "device_scheduler"

// The metrics of the plugin, beside those that kube-scheduler has of all its
// plugins. Labels have few values: no names of claims, nodes or devices.
var (
	claimWrites = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "claim_writes_total",
		Help:           "Write requests for ResourceClaims and the status of pods, by operation and result (ok, conflict, error).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation", "result"})

	claimRollBacks = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "claim_rollbacks_total",
		Help:           "ResourceClaims whose allocation or reservation was taken back because the attempt that wrote it failed.",
		StabilityLevel: metrics.ALPHA,
	})

	searches = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "searches_total",
		Help:           "Searches for devices on a node, by result (found, rejected, undecided, error).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	knownVerdicts = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "known_verdicts_total",
		Help:           "Nodes for which nothing had to be searched, because an equal pod was looked at before and nothing has changed since.",
		StabilityLevel: metrics.ALPHA,
	})

	searchSteps = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "search_steps",
		Help:           "Steps of the searches that found devices on a node.",
		Buckets:        []float64{1, 2, 5, 10, 20, 50, 100, 1000, 10000, 100000},
		StabilityLevel: metrics.ALPHA,
	})
)

// counters are what Filter counts. They are looked up once: to find a counter by
// its labels takes a lock.
type counters struct {
	found, rejected, undecided, failed, knownVerdicts metrics.CounterMetric
}

// search counts a search by its end.
func (c *counters) search(v *verdict.Verdict, err error) {
	switch {
	case errors.Is(err, errFilterTimeout):
		c.undecided.Inc()
	case err != nil:
		c.failed.Inc()
	case v.Solution != nil:
		c.found.Inc()
		searchSteps.Observe(float64(v.Solution.Steps))
	case v.Rejection.Cause == allocator.OutOfBudget:
		c.undecided.Inc()
	default:
		c.rejected.Inc()
	}
}

var registerMetrics = sync.OnceValue(func() *counters {
	schedmetrics.Register() // done already in a scheduler
	legacyregistry.MustRegister(claimWrites, claimRollBacks, searches, searchSteps, knownVerdicts)
	return &counters{
		found:         searches.WithLabelValues(resultFound),
		rejected:      searches.WithLabelValues(resultRejected),
		undecided:     searches.WithLabelValues(resultUndecided),
		failed:        searches.WithLabelValues(resultError),
		knownVerdicts: knownVerdicts,
	}
})

// The values of the label "result".
const (
	resultOK        = "ok"
	resultConflict  = "conflict"
	resultError     = "error"
	resultFound     = "found"
	resultRejected  = "rejected"
	resultUndecided = "undecided"
)

// operationLabels are the values of the label "operation".
var operationLabels = map[claimwriter.Operation]string{
	claimwriter.OperationAddFinalizer:    "add_finalizer",
	claimwriter.OperationRemoveFinalizer: "remove_finalizer",
	claimwriter.OperationWriteStatus:     "write_status",
	claimwriter.OperationRollBack:        "roll_back",
	claimwriter.OperationRelease:         "release",
	claimwriter.OperationDeallocate:      "deallocate",
	claimwriter.OperationCreate:          "create",
	claimwriter.OperationDelete:          "delete",
	claimwriter.OperationPatchPodStatus:  "patch_pod_status",
}

// writeObserver counts what the claimwriter does.
type writeObserver struct{}

var _ claimwriter.Observer = writeObserver{}

func (writeObserver) ClaimWritten(op claimwriter.Operation) {
	claimWrites.WithLabelValues(operationLabels[op], resultOK).Inc()
}

// Conflict does not know the operation: it is decided anew and may be another
// one then.
func (writeObserver) Conflict() { claimWrites.WithLabelValues("", resultConflict).Inc() }

func (writeObserver) RolledBack() { claimRollBacks.Inc() }

func (writeObserver) WriteFailed(op claimwriter.Operation) {
	claimWrites.WithLabelValues(operationLabels[op], resultError).Inc()
}
