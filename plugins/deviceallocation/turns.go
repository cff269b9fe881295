package deviceallocation

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// turns lets the pods of this scheduler write a claim one after the other.
// All at once they would make each other's version of the claim an old one, and
// most of a large group would give up after a few conflicts:
//
//	pod 1..20  read version 5
//	pod 1      writes version 6
//	pod 2..20  conflict, read version 6
//	pod 2      writes version 7
//	pod 3..20  conflict ...
//
// The zero value is ready. Safe for concurrent use.
type turns struct {
	mutex   sync.Mutex
	byClaim map[types.UID]*turn
}

// turn is the right to write one claim: whoever has put something in the
// channel has it.
type turn struct {
	taken chan struct{}
	users int // who has it or waits for it
}

// take waits for the turns of all claims, each of which must be named once.
// The error is that of the context; then there is nothing to give back. The
// claims are taken in one order by everybody, so that nobody waits for ever.
func (t *turns) take(ctx context.Context, claims []types.UID) (giveBack func(), err error) {
	claims = slices.Sorted(slices.Values(claims))
	taken := 0
	giveBack = func() {
		for _, claim := range claims[:taken] {
			<-t.of(claim, 0).taken
			t.of(claim, -1)
		}
	}
	for _, claim := range claims {
		select {
		case t.of(claim, 1).taken <- struct{}{}:
			taken++
		case <-ctx.Done():
			t.of(claim, -1)
			giveBack()
			return nil, context.Cause(ctx)
		}
	}
	return giveBack, nil
}

// of returns the turn of a claim after so many users have come or gone.
func (t *turns) of(claim types.UID, users int) *turn {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	found := t.byClaim[claim]
	if found == nil {
		found = &turn{taken: make(chan struct{}, 1)}
		if t.byClaim == nil {
			t.byClaim = make(map[types.UID]*turn)
		}
		t.byClaim[claim] = found
	}
	if found.users += users; found.users == 0 {
		delete(t.byClaim, claim)
	}
	return found
}
