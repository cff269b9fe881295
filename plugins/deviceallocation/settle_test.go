package deviceallocation

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/claimwriter"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// TestDoubtfulReservation: the API server answers neither the write of a claim
// nor the attempt to take it back, so nobody knows whether the claim holds the
// device. It stays reserved until the API server has told.
func TestDoubtfulReservation(t *testing.T) {
	pod, other := builders.Pod("pod").Claim("one").Obj(), builders.Pod("other").Claim("other").Obj()
	run(t, oneNode(1, claimFor("one", 1), claimFor("other", 1)), func(h *harness) {
		h.fail(&fault{request: "update/status one", err: errTimeout})
		for range 30 { // for PreBind, its roll-back, and the first looks afterwards
			h.fail(&fault{request: "get one", err: errTimeout})
		}
		a := h.attempt(pod).find("node")
		a.must(a.reserve("node"))
		if status := a.preBind("node"); status.IsSuccess() {
			t.Fatal("PreBind succeeds without an answer")
		}
		a.unreserve("node")
		h.settle()
		expectAll(t, "holders in doubt", h.holders("node", "gpu-0"), "one (reserved)")
		expectAll(t, "search of another pod in doubt", h.attempt(other).search("node"), inUse)

		time.Sleep(30 * settleBackoff.Cap) // in the bubble's time
		h.settle()
		expectAll(t, "holders in the end", h.holders("node", "gpu-0"))
		expectAll(t, "search of another pod in the end", h.attempt(other).search("node"), "Success")
	})
}

func TestRollBackFailed(t *testing.T) {
	write := &claimwriter.Error{Operation: claimwriter.OperationWriteStatus, Err: errTimeout}
	rollBack := &claimwriter.Error{Operation: claimwriter.OperationRollBack, Err: errTimeout}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":           {},
		"of something else":  {err: errTimeout},
		"write":              {err: write},
		"roll-back":          {err: rollBack, want: true},
		"one of two":         {err: errors.Join(write, fmt.Errorf("wrapped: %w", rollBack)), want: true},
		"two writes":         {err: errors.Join(write, write)},
		"inside another one": {err: &claimwriter.Error{Operation: claimwriter.OperationBind, Err: rollBack}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, "roll-back failed", claimwriter.RollBackFailed(tc.err), tc.want)
		})
	}
}
