package deviceallocation

import (
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/recency"
)

// claimWatch passes what the informer tells about single claims on to the pods
// that wait for something in them. It is safe for concurrent use; an event of a
// claim that nobody watches costs one look into a map.
type claimWatch struct {
	mutex    sync.Mutex
	watchers map[types.NamespacedName]map[*claimWatcher]struct{}
}

// claimWatcher knows the newest version of some claims.
type claimWatcher struct {
	watch *claimWatch
	names []types.NamespacedName
	// newest has nil for a claim that is gone; guarded by the watch's mutex.
	newest map[types.NamespacedName]*resourceapi.ResourceClaim
	// changed has an entry if the newest versions were not asked for since they
	// have changed.
	changed chan struct{}
}

func nameOfClaim(claim *resourceapi.ResourceClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}

// add watches claims, from the given versions on. The caller must stop the
// watcher.
func (w *claimWatch) add(claims []*resourceapi.ResourceClaim) *claimWatcher {
	watcher := &claimWatcher{watch: w, newest: make(map[types.NamespacedName]*resourceapi.ResourceClaim), changed: make(chan struct{}, 1)}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.watchers == nil {
		w.watchers = make(map[types.NamespacedName]map[*claimWatcher]struct{})
	}
	for _, claim := range claims {
		name := nameOfClaim(claim)
		watcher.names = append(watcher.names, name)
		watcher.newest[name] = claim
		if w.watchers[name] == nil {
			w.watchers[name] = make(map[*claimWatcher]struct{})
		}
		w.watchers[name][watcher] = struct{}{}
	}
	return watcher
}

// stop ends the watch. A nil watcher has none.
func (c *claimWatcher) stop() {
	if c == nil {
		return
	}
	c.watch.mutex.Lock()
	defer c.watch.mutex.Unlock()
	for _, name := range c.names {
		delete(c.watch.watchers[name], c)
		if len(c.watch.watchers[name]) == 0 {
			delete(c.watch.watchers, name)
		}
	}
}

// claims returns the newest versions in the order of add, nil for a claim that
// is gone. They must not be changed.
func (c *claimWatcher) claims() []*resourceapi.ResourceClaim {
	c.watch.mutex.Lock()
	defer c.watch.mutex.Unlock()
	select {
	case <-c.changed:
	default:
	}
	claims := make([]*resourceapi.ResourceClaim, len(c.names))
	for i, name := range c.names {
		claims[i] = c.newest[name]
	}
	return claims
}

// seen tells the watchers about a version of a claim, which may be an old one.
func (w *claimWatch) seen(claim *resourceapi.ResourceClaim) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	name := nameOfClaim(claim)
	for watcher := range w.watchers[name] {
		known := watcher.newest[name]
		switch {
		case known == nil || !recency.Newer(claim.ResourceVersion, known.ResourceVersion):
			continue
		case known.UID != claim.UID:
			// An informer may report the end of a claim and the next one of its
			// name as a single update.
			watcher.set(name, nil)
		default:
			watcher.set(name, claim)
		}
	}
}

// gone tells the watchers about the end of a claim.
func (w *claimWatch) gone(claim *resourceapi.ResourceClaim) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	name := nameOfClaim(claim)
	for watcher := range w.watchers[name] {
		if known := watcher.newest[name]; known != nil && known.UID == claim.UID {
			watcher.set(name, nil)
		}
	}
}

func (c *claimWatcher) set(name types.NamespacedName, claim *resourceapi.ResourceClaim) {
	c.newest[name] = claim
	select {
	case c.changed <- struct{}{}:
	default: // it will look anyway
	}
}
