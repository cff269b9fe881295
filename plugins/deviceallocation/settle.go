package deviceallocation

import (
	"context"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// settleBackoff asks soon at first, and then about twice in a minute for as
// long as the API server is away.
var settleBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 9, Cap: 30 * time.Second}

// settle ends the reservations of an attempt whose roll-back failed: once the
// API server has told what became of the claims. Until then their devices stay
// reserved, or another pod could be given devices that a claim holds without
// our informers knowing it.
func (pl *Plugin) settle(logger klog.Logger, r *reservation) {
	ctx := klog.NewContext(pl.lifetime, logger)
	for i := range r.claims {
		claim := r.claims[i].claim
		if r.claims[i].extended {
			claim = r.created // deleted by Unreserve, or held by itself
		}
		if claim != nil {
			pl.observe(ctx, claim)
		}
	}
	pl.inFlight.settle(r)
}

// observe feeds the present state of a claim into the ledger. It gives up only
// at the end of the scheduler: a ledger that does not know is worse than a
// device that waits.
func (pl *Plugin) observe(ctx context.Context, claim *resourceapi.ResourceClaim) {
	logger := klog.FromContext(ctx)
	err := settleBackoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		current, err := pl.handle.ClientSet().ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			logger.V(3).Info("Cannot tell yet whether the claim holds devices", "resourceclaim", klog.KObj(claim), "err", err)
			return false, nil
		}
		if current.UID == claim.UID {
			pl.inFlight.observe(current)
		}
		return true, nil
	})
	if err != nil {
		logger.V(3).Info("Stopped before it was clear whether the claim holds devices", "resourceclaim", klog.KObj(claim))
	}
}
