package controlplane

import (
	"fmt"
	"net"
	"strconv"
)

// Names of the components, for ControlPlane.Component and as the sandbox
// binary's first argument.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Kwok              = "kwok"
)

const (
	serviceCIDR = "10.96.0.0/16"
	podCIDR     = "10.244.0.0/16"
	// serviceAccountIssuer is what ServiceAccount tokens carry as issuer and audience.
	serviceAccountIssuer = "https://kubernetes.default.svc"
	// nodeLeaseSeconds is a kubelet's default; the leases are renewed four times
	// as often, well within the controller manager's patience.
	nodeLeaseSeconds = 40
)

// serviceIP is the address of the Service "kubernetes": the first of serviceCIDR.
var serviceIP = net.IPv4(10, 96, 0, 1)

func etcdArgs(s *settings) []string {
	client, peer := secureURL(s.ports.etcd), secureURL(s.ports.etcdPeer)
	return []string{
		"--name=sandbox",
		"--data-dir=" + s.dir.file("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=sandbox=" + peer,
		"--cert-file=" + s.serving.certFile,
		"--key-file=" + s.serving.keyFile,
		"--trusted-ca-file=" + s.ca.certFile,
		"--client-cert-auth",
		"--peer-cert-file=" + s.serving.certFile,
		"--peer-key-file=" + s.serving.keyFile,
		"--peer-trusted-ca-file=" + s.ca.certFile,
		"--peer-client-cert-auth",
		// Data of a sandbox need not survive a power cut, and tests wait for every write.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func apiServerArgs(s *settings) []string {
	args := []string{
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(s.ports.apiServer),
		"--tls-cert-file=" + s.serving.certFile,
		"--tls-private-key-file=" + s.serving.keyFile,
		"--client-ca-file=" + s.ca.certFile,
		"--token-auth-file=" + s.credentials.tokenFile,
		// For aggregated APIs; schedulers and controllers read it as well when
		// they check who calls them. Only the proxy's own name may speak for others.
		"--proxy-client-cert-file=" + s.proxy.certFile,
		"--proxy-client-key-file=" + s.proxy.keyFile,
		"--requestheader-client-ca-file=" + s.ca.certFile,
		"--requestheader-allowed-names=" + proxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--authorization-mode=RBAC",
		"--etcd-servers=" + secureURL(s.ports.etcd),
		"--etcd-cafile=" + s.ca.certFile,
		"--etcd-certfile=" + s.admin.certFile,
		"--etcd-keyfile=" + s.admin.keyFile,
		"--service-account-issuer=" + serviceAccountIssuer,
		"--service-account-key-file=" + s.signingKey,
		"--service-account-signing-key-file=" + s.signingKey,
		"--service-cluster-ip-range=" + serviceCIDR,
		// Endpoints must not hold a loopback address, so the Service
		// "kubernetes" stays without any: nothing inside the sandbox dials it.
		"--endpoint-reconciler-type=none",
	}
	args = append(args, s.options.featureGateFlag()...)
	return append(args, s.options.APIServerFlags...)
}

func controllerManagerArgs(s *settings) []string {
	kubeconfig := s.dir.file(controllerManagerKubeconfig)
	args := []string{
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(s.ports.controllerManager),
		"--tls-cert-file=" + s.serving.certFile,
		"--tls-private-key-file=" + s.serving.keyFile,
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + s.signingKey,
		"--root-ca-file=" + s.ca.certFile,
		"--cluster-signing-cert-file=" + s.ca.certFile,
		"--cluster-signing-key-file=" + s.ca.keyFile,
	}
	args = append(args, s.options.featureGateFlag()...)
	return append(args, s.options.ControllerManagerFlags...)
}

func kwokArgs(s *settings) []string {
	args := []string{"--kubeconfig=" + s.dir.file(kwokKubeconfig)}
	for _, file := range s.stageFiles {
		args = append(args, "--config="+file)
	}
	args = append(args,
		"--manage-all-nodes=true",
		"--server-address="+net.JoinHostPort(loopback, strconv.Itoa(s.ports.kwok)),
		fmt.Sprintf("--node-lease-duration-seconds=%d", nodeLeaseSeconds),
		"--cidr="+podCIDR,
	)
	return append(args, s.options.KwokFlags...)
}

// components returns what the options ask for, in starting order.
func (s *settings) components(died func(error)) []*Component {
	list := []*Component{
		s.component(Etcd, etcdArgs(s)),
		s.component(APIServer, apiServerArgs(s)),
	}
	list[0].probe = probeURL(s.client, secureURL(s.ports.etcd)+"/readyz")
	list[1].probe = probeURL(s.client, s.apiServerURL()+"/readyz")
	if !s.options.WithoutControllerManager {
		c := s.component(ControllerManager, controllerManagerArgs(s))
		c.probe = probeURL(s.client, secureURL(s.ports.controllerManager)+"/healthz")
		list = append(list, c)
	}
	if !s.options.WithoutKwok {
		c := s.component(Kwok, kwokArgs(s))
		c.env = []string{"KWOK_WORKDIR=" + s.dir.file("kwok")} // else it reads ~/.kwok as well
		c.prepare = s.releaseNodeLeases
		c.probe = probeURL(s.client, fmt.Sprintf("http://%s:%d/healthz", loopback, s.ports.kwok))
		list = append(list, c)
	}
	for _, c := range list {
		c.died = died
	}
	return list
}

func (s *settings) component(name string, args []string) *Component {
	return &Component{
		name: name, args: args, binary: s.options.Binary,
		dir: s.dir.path, logFile: s.dir.file("logs", name+".log"),
	}
}
