package claimwriter

import (
	"context"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
)

// DefaultCleanupTimeout bounds taking back what was written. It is long enough for an API server to be restarted, and
// short enough not to hold a binding goroutine for ever.
const DefaultCleanupTimeout = 30 * time.Second

// Observer is told what happens on the way to the API server, for metrics. It is called from several goroutines.
type Observer interface {
	// ClaimWritten: op changed an object.
	ClaimWritten(op Operation)
	// Conflict: a write was refused because the claim had changed; it is decided anew.
	Conflict()
	// RolledBack: what an attempt wrote into one claim was taken out again.
	RolledBack()
	// WriteFailed: a request of op was answered with an error other than a conflict, or with none.
	WriteFailed(op Operation)
}

// Writer writes claims. It is safe for concurrent use.
type Writer struct {
	client         kubernetes.Interface
	observer       Observer
	cleanupTimeout time.Duration
}

// New returns a writer. observer may be nil. cleanupTimeout bounds Release and the roll-back of Bind, which do not end
// with the caller's context; 0 means DefaultCleanupTimeout.
func New(client kubernetes.Interface, observer Observer, cleanupTimeout time.Duration) *Writer {
	if observer == nil {
		observer = silent{}
	}
	if cleanupTimeout <= 0 {
		cleanupTimeout = DefaultCleanupTimeout
	}
	return &Writer{client: client, observer: observer, cleanupTimeout: cleanupTimeout}
}

type silent struct{}

func (silent) ClaimWritten(Operation) {}
func (silent) Conflict()              {}
func (silent) RolledBack()            {}
func (silent) WriteFailed(Operation)  {}

// cleanupContext returns the context for taking something back. The caller's may have ended, often that is why
// something is taken back at all.
func (w *Writer) cleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), w.cleanupTimeout)
}

func (w *Writer) claims(namespace string) resourceclient.ResourceClaimInterface {
	return w.client.ResourceV1().ResourceClaims(namespace)
}

// read returns the claim as the API server has it now: ErrGone and ErrReplaced if that is not the claim of before.
func (w *Writer) read(ctx context.Context, before *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	claim, err := w.claims(before.Namespace).Get(ctx, before.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrGone
	case err != nil:
		return nil, claimError(OperationRead, before, requestFailed(err))
	case claim.UID != before.UID:
		return nil, ErrReplaced
	}
	return claim, nil
}

// addFinalizer writes claim with the finalizer that keeps it from vanishing while it holds devices.
func (w *Writer) addFinalizer(ctx context.Context, claim *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	claim = claim.DeepCopy()
	claim.Finalizers = append(claim.Finalizers, resourceapi.Finalizer)
	updated, err := w.claims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	return updated, w.observe(OperationAddFinalizer, "claim", claim, err)
}

// updateStatus writes the status of claim. op is the reason, for errors and metrics.
func (w *Writer) updateStatus(ctx context.Context, op Operation, claim *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	updated, err := w.claims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return updated, w.observe(op, "claim", claim, err)
}

// observe counts the outcome of a write and names the object in its error.
func (w *Writer) observe(op Operation, kind string, obj metav1.Object, err error) error {
	switch {
	case err == nil:
		w.observer.ClaimWritten(op)
	case apierrors.IsConflict(err):
		w.observer.Conflict()
	default:
		w.observer.WriteFailed(op)
	}
	return objectError(op, kind, obj, requestFailed(err))
}

// cleanupBackoff waits up to about ten seconds in all. What is to be taken back should survive a short outage of the API
// server, which is often what made the attempt fail.
var cleanupBackoff = wait.Backoff{Steps: 8, Duration: 10 * time.Millisecond, Factor: 3, Jitter: 0.1}

// untilSettled calls f until it succeeds, fails for good, has used up the backoff, or the context has ended. After an
// unsettled error f must read the object before it writes again. Without any call of f it returns the context's error.
func untilSettled(ctx context.Context, backoff wait.Backoff, f func() error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		last = f()
		if isUnsettled(last) {
			return false, nil
		}
		return true, last
	})
	if last != nil {
		return last
	}
	return err
}

func isReservedFor(claim *resourceapi.ResourceClaim, consumer types.UID) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
		return c.UID == consumer
	})
}

// isReservedForOthers is true if the claim has a consumer that is not the given one.
func isReservedForOthers(claim *resourceapi.ResourceClaim, consumer types.UID) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
		return c.UID != consumer
	})
}
