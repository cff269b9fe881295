// Package node runs a real Kubernetes node on the machine at hand: containerd,
// kubelet and DRA drivers, in namespaces of their own, with a network device of
// their own. Several nodes are connected by a bridge, like machines by a switch.
//
// Each program can be ended, killed and started again, and the node as a whole
// can lose its power: then everything on it is gone but its disk, which is a
// directory.
//
// It decides how a node is set up, never what runs on it.
package node
