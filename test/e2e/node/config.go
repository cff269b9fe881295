//go:build linux

package node

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/device-scheduler/device-scheduler/test/e2e/image"
)

//go:embed containerd.toml
var containerdConfig string

//go:embed kubelet.yaml
var kubeletConfig string

// cniConfig makes the node ready. Nobody uses it: all pods have the node's own
// network.
const cniConfig = `{"cniVersion": "1.0.0", "name": "unused", "plugins": [{"type": "loopback"}]}
`

// APIServerName is the name under which nodes know the API server: one that is in
// its certificate.
const APIServerName = "kubernetes.default.svc"

// Paths on the node.
const (
	kubeletDirectory     = "/var/lib/kubelet"
	kubeletConfigPath    = kubeletDirectory + "/config.yaml"
	kubeletKubeconfig    = kubeletDirectory + "/kubeconfig" // the kubelet writes it
	bootstrapKubeconfig  = kubeletDirectory + "/bootstrap.kubeconfig"
	containerdConfigPath = "/var/lib/containerd/config.toml"
	containerdSocket     = "/run/containerd/containerd.sock"
	cdiDirectory         = "/run/cdi"
)

// writeDisk writes what a node finds on its disk when it is started for the first
// time.
func (n *Node) writeDisk() error {
	var containerd strings.Builder
	err := template.Must(template.New("containerd").Parse(containerdConfig)).Execute(&containerd, map[string]string{
		"Shim": n.binary("containerd-shim-runc-v2"), "Runc": n.options.Runc, "PauseImage": image.Pause,
	})
	if err != nil {
		return fmt.Errorf("write configuration of containerd: %w", err)
	}
	hostsText := fmt.Sprintf("127.0.0.1 localhost\n%s %s\n%s %s\n", n.options.Address, n.options.Name, n.options.Gateway, APIServerName)
	for name, content := range map[string]string{
		hosts:                    hostsText,
		"containerd/config.toml": containerd.String(),
		"kubelet/config.yaml":    kubeletConfig,
		"kubelet/ca.crt":         string(n.options.CA),
		"cni/10-unused.conflist": cniConfig,
	} {
		path := filepath.Join(n.options.Disk, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("write disk: %w", err)
		}
	}
	return n.writeKubeconfig(filepath.Join(n.options.Disk, "kubelet/bootstrap.kubeconfig"))
}

// writeKubeconfig writes the credential with which the kubelet asks for one of
// its own, and which the drivers use.
func (n *Node) writeKubeconfig(path string) error {
	const name = "cluster"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   fmt.Sprintf("https://%s:%s", APIServerName, n.options.Port),
		CertificateAuthorityData: n.options.CA,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: n.options.Token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
