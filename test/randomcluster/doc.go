// Package randomcluster makes up small clusters that use all features of
// Dynamic Resource Allocation, together and in odd combinations, and asks
// kube-scheduler's own allocator about them.
//
// The same seed always gives the same cluster. The clusters are valid as far as
// the API server would see it, except that pools may be half published or
// contradict themselves. About as many claims can be allocated as cannot.
package randomcluster
