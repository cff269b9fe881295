// Package allocationcheck tells whether allocations are sound: whether the
// devices exist, suit their requests, are free, and whether the results say
// what kubelet and drivers need.
//
// It reads API objects and knows the rules of the resource.k8s.io API, but
// neither our allocator nor kube-scheduler's, so that it can judge both. It
// never searches: it does not know whether an allocation is the best one, nor
// whether there is one at all. Tests call it; it is neither fast nor meant to
// be.
package allocationcheck
