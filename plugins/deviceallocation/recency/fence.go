package recency

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// rememberedDeletions bounds the memory of a Fence. A UID is never used twice,
// so a deletion has to be remembered only until the last event of that object
// has been delivered to both the hint and the handler. These lag behind each
// other by seconds at most, in which a cluster deletes far fewer than this many
// objects of one kind; when it does not, the oldest deletions are forgotten
// first.
const rememberedDeletions = 8192

// Fence remembers, for each object of one resource, the newest version seen,
// and that it was deleted. Deletions are final: nothing about the object is
// news afterwards, whatever its resourceVersion. Create it with NewFence. It
// is safe for concurrent use.
type Fence struct {
	mu       sync.Mutex
	versions map[types.UID]string
	deleted  map[types.UID]struct{}
	// deletions is a ring of what is in deleted; the entry at next is the
	// oldest one.
	deletions []types.UID
	next      int
}

// NewFence returns a Fence that has seen nothing.
func NewFence() *Fence {
	return newFence(rememberedDeletions)
}

func newFence(remembered int) *Fence {
	return &Fence{
		versions:  make(map[types.UID]string),
		deleted:   make(map[types.UID]struct{}),
		deletions: make([]types.UID, remembered),
	}
}

// Observe reports whether the object is news, and remembers that it was seen.
//
// An object without UID never was in an API server and cannot be recognized
// again: it always is news. The same holds for a resourceVersion that is not a
// positive number, unless the object is known to be deleted.
func (f *Fence) Observe(uid types.UID, resourceVersion string) bool {
	if uid == "" {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, gone := f.deleted[uid]; gone {
		return false
	}
	seen, known := f.versions[uid]
	if known && !Newer(resourceVersion, seen) {
		return false
	}
	if !known || ordered(resourceVersion) {
		f.versions[uid] = resourceVersion
	}
	return true
}

// Delete remembers that the object is gone. It reports whether that is news.
// It may be called before the first Observe.
func (f *Fence) Delete(uid types.UID) bool {
	if uid == "" {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, gone := f.deleted[uid]; gone {
		return false
	}
	delete(f.versions, uid)
	if oldest := f.deletions[f.next]; oldest != "" {
		delete(f.deleted, oldest)
	}
	f.deletions[f.next] = uid
	f.next = (f.next + 1) % len(f.deletions)
	f.deleted[uid] = struct{}{}
	return true
}

// Newer reports whether version comes after seen. Versions that cannot be
// ordered count as newer: ignoring an event would leave old state in place
// for good, while applying one twice only costs time.
func Newer(version, seen string) bool {
	order, err := resourceversion.CompareResourceVersion(version, seen)
	return err != nil || order > 0
}

func ordered(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}
