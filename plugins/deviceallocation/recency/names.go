package recency

import "k8s.io/apimachinery/pkg/types"

// Names decides which object bears a name. An object may be deleted and created
// anew under its old name; an informer then may report a single update from the
// old object to the new one, and never the deletion. At any resourceVersion
// only one object bears a name, so whatever was seen of the name at a lower
// version is gone.
//
// K is the name: a string or a types.NamespacedName. Names is not safe for
// concurrent use; its owner has a lock anyway.
type Names[K comparable] struct {
	fence   *Fence
	bearers map[K]bearer
}

type bearer struct {
	uid     types.UID
	version string
}

// NewNames returns a Names that has seen nothing.
func NewNames[K comparable]() *Names[K] {
	return &Names[K]{fence: NewFence(), bearers: make(map[K]bearer)}
}

// Observe reports whether the object is news about its name. replaced is the
// UID of the object that bore the name until now, when it was another one: that
// object is gone.
func (n *Names[K]) Observe(name K, uid types.UID, resourceVersion string) (news bool, replaced types.UID) {
	current, known := n.bearers[name]
	if known && current.uid != uid && !Newer(resourceVersion, current.version) {
		n.fence.Delete(uid)
		return false, ""
	}
	if !n.fence.Observe(uid, resourceVersion) {
		return false, ""
	}
	if known && current.uid != uid {
		n.fence.Delete(current.uid)
		replaced = current.uid
	}
	n.bearers[name] = bearer{uid: uid, version: resourceVersion}
	return true, replaced
}

// Delete reports whether the object still bore its name, which is free now.
func (n *Names[K]) Delete(name K, uid types.UID) bool {
	n.fence.Delete(uid)
	current, known := n.bearers[name]
	if !known || current.uid != uid {
		return false
	}
	delete(n.bearers, name)
	return true
}
