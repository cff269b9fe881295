package controlplane

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The users of the token file. The controller manager gets its usual name, so
// that RBAC's bootstrap roles apply to it as in any cluster; people and the
// simulated kubelets are cluster administrators.
const (
	adminUser             = "sandbox-admin"
	kwokUser              = "sandbox-kwok"
	proxyUser             = "sandbox-front-proxy" // has a certificate, no token
	controllerManagerUser = "system:kube-controller-manager"
	administratorsGroup   = "system:masters"
)

// credentials are the bearer tokens of one run and the files that hold them.
type credentials struct {
	tokenFile string
	tokens    map[string]string // by user
}

// newCredentials draws tokens and writes the API server's token file into dir.
func newCredentials(dir string) (*credentials, error) {
	c := &credentials{tokenFile: filepath.Join(dir, "tokens.csv"), tokens: map[string]string{}}
	var lines strings.Builder
	for _, user := range []struct{ name, groups string }{
		{adminUser, administratorsGroup},
		{kwokUser, administratorsGroup},
		{controllerManagerUser, ""},
	} {
		c.tokens[user.name] = rand.Text()
		// The third column is the user's unique ID, which the name serves as well.
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", c.tokens[user.name], user.name, user.name, user.groups)
	}
	if err := os.WriteFile(c.tokenFile, []byte(lines.String()), 0o600); err != nil {
		return nil, fmt.Errorf("write token file: %w", err)
	}
	return c, nil
}

// writeKubeconfig writes a self-contained kubeconfig file: no path in it refers
// to another file, so that it can be copied elsewhere.
func writeKubeconfig(file, server string, caPEM []byte, user, token string) error {
	const cluster = "sandbox"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caPEM}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
