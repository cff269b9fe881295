package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Kubeconfig files inside the directory; the first is for people and tests.
const (
	adminKubeconfig             = "kubeconfig"
	controllerManagerKubeconfig = "kube-controller-manager.kubeconfig"
	kwokKubeconfig              = "kwok.kubeconfig"
)

// settings are the facts that the components' flags are made of. Apart from the
// ports they are fixed for one run.
type settings struct {
	options     Options
	dir         *directory
	ports       ports
	ca          *authority
	serving     keyPair // presented by every server
	admin       keyPair // presented to etcd and in probes
	proxy       keyPair // presented by the API server to aggregated ones
	signingKey  string  // file; signs ServiceAccount tokens
	credentials *credentials
	stageFiles  []string // what kwok simulates
	client      *http.Client
}

// newSettings writes everything into dir that does not depend on ports.
// Certificates and tokens are new in each run, also when the data of an earlier
// run lie in dir: nothing in a cluster without kubelets holds on to them.
func newSettings(options Options, dir *directory) (*settings, error) {
	s := &settings{options: options, dir: dir}
	if _, err := dir.subdirectory("logs"); err != nil {
		return nil, err
	}
	pki, err := dir.subdirectory("pki")
	if err != nil {
		return nil, err
	}
	if s.ca, err = newAuthority(pki); err != nil {
		return nil, err
	}
	if s.serving, err = s.ca.issue("serving"); err != nil {
		return nil, err
	}
	if s.admin, err = s.ca.issue(adminUser, administratorsGroup); err != nil {
		return nil, err
	}
	if s.proxy, err = s.ca.issue(proxyUser); err != nil {
		return nil, err
	}
	if s.signingKey, err = newSigningKey(pki); err != nil {
		return nil, err
	}
	if s.credentials, err = newCredentials(pki); err != nil {
		return nil, err
	}
	if s.stageFiles, err = writeStages(dir); err != nil {
		return nil, err
	}
	s.client, err = newProbeClient(s.ca, s.admin)
	return s, err
}

// choosePorts picks ports and writes the kubeconfig files that name them.
func (s *settings) choosePorts() (err error) {
	if s.ports, err = pickPorts(); err != nil {
		return err
	}
	for file, user := range map[string]string{
		adminKubeconfig:             adminUser,
		controllerManagerKubeconfig: controllerManagerUser,
		kwokKubeconfig:              kwokUser,
	} {
		err := writeKubeconfig(s.dir.file(file), s.apiServerURL(), s.ca.pem, user, s.credentials.tokens[user])
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) apiServerURL() string { return secureURL(s.ports.apiServer) }

// restConfig returns a new administrator's client configuration. It has no
// client-side rate limit: the API server limits by itself, and tests should not
// wait for their own client.
func (s *settings) restConfig() *rest.Config {
	return &rest.Config{
		Host:            s.apiServerURL(),
		BearerToken:     s.credentials.tokens[adminUser],
		TLSClientConfig: rest.TLSClientConfig{CAData: append([]byte(nil), s.ca.pem...)},
		QPS:             -1,
	}
}

// releaseNodeLeases deletes the leases of all nodes before kwok starts. kwok
// identifies itself anew at each start and leaves a node alone while another
// holder's lease lasts; without this a restarted kwok would do nothing for
// nodeLeaseSeconds.
func (s *settings) releaseNodeLeases(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.restConfig())
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	err = client.CoordinationV1().Leases(corev1.NamespaceNodeLease).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node leases of an earlier run: %w", err)
	}
	return nil
}

// awaitDefaultServiceAccount waits for the controller manager's first visible
// act. Until then the API server refuses pods in the namespace "default".
func (s *settings) awaitDefaultServiceAccount(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.restConfig())
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	lastErr := errors.New("not asked yet")
	err = wait.PollUntilContextCancel(ctx, probeInterval, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if ctx.Err() == nil { // an error caused by ctx itself says nothing
			lastErr = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for ServiceAccount default/default from %s (see %s): %w; last answer: %w",
			ControllerManager, s.dir.file("logs", ControllerManager+".log"), context.Cause(ctx), lastErr)
	}
	return nil
}
