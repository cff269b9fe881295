package recency

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// step is one event and what is to be said about it.
type step struct {
	deleted bool
	uid     types.UID
	version string
	news    bool
}

func TestFence(t *testing.T) {
	tests := map[string][]step{
		"numeric, not alphabetic, order": {
			{uid: "a", version: "9", news: true},
			{uid: "a", version: "10", news: true},
			{uid: "a", version: "9", news: false},
		},
		"the same version twice": {
			{uid: "a", version: "5", news: true},
			{uid: "a", version: "5", news: false},
		},
		"objects do not influence each other": {
			{uid: "a", version: "7", news: true},
			{uid: "b", version: "5", news: true},
			{uid: "a", deleted: true, news: true},
			{uid: "b", version: "6", news: true},
		},
		"a deletion is final": {
			{uid: "a", version: "5", news: true},
			{uid: "a", deleted: true, news: true},
			{uid: "a", version: "6", news: false},
			{uid: "a", deleted: true, news: false},
		},
		"deleted before it was ever seen": {
			{uid: "a", deleted: true, news: true},
			{uid: "a", version: "1", news: false},
		},
		"a version that is no number cannot be old": {
			{uid: "a", version: "5", news: true},
			{uid: "a", version: "", news: true},
			{uid: "a", version: "5", news: false},
			{uid: "b", version: "", news: true},
			{uid: "b", version: "", news: true},
			{uid: "b", version: "3", news: true},
			{uid: "b", version: "3", news: false},
		},
		"objects without UID are never recognized": {
			{version: "5", news: true},
			{deleted: true, news: true},
			{version: "4", news: true},
			{deleted: true, news: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fence := NewFence()
			for i, s := range tc {
				got := false
				if s.deleted {
					got = fence.Delete(s.uid)
				} else {
					got = fence.Observe(s.uid, s.version)
				}
				if got != s.news {
					t.Errorf("step %d, %+v: got %v", i, s, got)
				}
			}
		})
	}
}

func TestFenceMemoryIsBounded(t *testing.T) {
	fence := newFence(3)
	for i := range 10 {
		uid := types.UID(fmt.Sprint("uid-", i))
		fence.Observe(uid, "1")
		fence.Delete(uid)
	}
	if len(fence.versions) != 0 || len(fence.deleted) != 3 {
		t.Errorf("remembers %d versions and %d deletions, want 0 and 3", len(fence.versions), len(fence.deleted))
	}
	if fence.Observe("uid-7", "2") || fence.Observe("uid-9", "2") {
		t.Error("one of the last three deletions was forgotten")
	}
	if !fence.Observe("uid-6", "2") {
		t.Error("the oldest deletion was not the first to be forgotten")
	}
}

func TestNames(t *testing.T) {
	type event struct {
		deleted  bool
		uid      types.UID
		version  string
		news     bool
		replaced types.UID
	}
	tests := map[string][]event{
		"recreated, and the deletion comes late": {
			{uid: "old", version: "1", news: true},
			{uid: "new", version: "5", news: true, replaced: "old"},
			{uid: "old", deleted: true, news: false},
			{uid: "new", version: "6", news: true},
		},
		"recreated, and the old object is seen late": {
			{uid: "new", version: "5", news: true},
			{uid: "old", version: "2", news: false},
			{uid: "new", deleted: true, news: true},
			{uid: "old", version: "3", news: false},
		},
		"replaced objects stay away for good": {
			{uid: "old", version: "1", news: true},
			{uid: "new", version: "5", news: true, replaced: "old"},
			{uid: "new", deleted: true, news: true},
			{uid: "old", version: "2", news: false},
		},
		"deleted and seen again": {
			{uid: "old", version: "1", news: true},
			{uid: "old", deleted: true, news: true},
			{uid: "old", version: "2", news: false},
			{uid: "new", version: "3", news: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			names := NewNames[string]()
			for i, e := range tc {
				got := event{deleted: e.deleted, uid: e.uid, version: e.version}
				if e.deleted {
					got.news = names.Delete("name", e.uid)
				} else {
					got.news, got.replaced = names.Observe("name", e.uid, e.version)
				}
				if diff := cmp.Diff(e, got, cmp.AllowUnexported(event{})); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}
