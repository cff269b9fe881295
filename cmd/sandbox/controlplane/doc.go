// Package controlplane runs a real Kubernetes control plane on this machine,
// without root and without containers: etcd, kube-apiserver,
// kube-controller-manager and, in place of kubelets, kwok.
//
// It decides which processes run, with which flags, on which ports, with which
// certificates, and in which order they start and stop. Every process is the
// sandbox binary with the component's name as its first argument; one process
// per component, because each component installs its own signal handler and
// global flags, and because tests want to kill and restart them one by one.
//
// It never links a Kubernetes server (a test that imports it stays small),
// never listens on anything but 127.0.0.1, and never touches a file outside its
// own directory.
//
// Who calls it: `sandbox up`, the demo, and the integration tests. It runs on
// Unix only; on Linux the processes do not outlive their parent even if the
// parent is killed with SIGKILL.
//
// What the simulated nodes do is written in stages/*.yaml. They do not check
// device claims the way a kubelet does: a pod that is bound to a node runs,
// whether or not its claims are allocated.
package controlplane
