package deviceallocation

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	schedmetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
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

	searchSteps = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "search_steps",
		Help:           "Steps of the searches that found devices on a node.",
		Buckets:        []float64{1, 2, 5, 10, 20, 50, 100, 1000, 10000, 100000},
		StabilityLevel: metrics.ALPHA,
	})
)

var registerMetrics = sync.OnceFunc(func() {
	schedmetrics.Register() // done already in a scheduler
	legacyregistry.MustRegister(claimWrites, claimRollBacks, searches, searchSteps)
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
