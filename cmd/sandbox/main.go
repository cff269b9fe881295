package main

import (
	"os"
	"context"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubectl/pkg/cmd"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
)

func main() {
	switch os.Args[1] {
	case "etcd":
		etcdmain.Main(os.Args[1:])
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kcm":
		os.Exit(cli.Run(kcm.NewControllerManagerCommand()))
	case "kubectl":
		os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
	case "kwok":
		_ = kwok.NewCommand(context.Background())
	}
}
