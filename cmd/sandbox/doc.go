// Command sandbox is a Kubernetes control plane for trying things out, in one
// binary that needs no root, no containers and no network: etcd, kube-apiserver,
// kube-controller-manager, kubectl, and kwok, which stands in for kubelets.
//
// `sandbox up` runs all of it (package controlplane) with simulated hardware of
// your choice (package hardware). `sandbox etcd`, `sandbox kube-apiserver` and
// so on are the components themselves, unchanged, with their own flags; `up`
// starts its own binary that way once per component, because each of them owns
// its process's signals and flags.
//
// `sandbox demo` (package demo) runs the examples of this project in it, with
// device-scheduler's own binary, and checks what they promise.
//
// It decides nothing about scheduling. It brings no scheduler: that is what
// people try out in it.
package main
