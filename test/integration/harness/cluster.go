package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
)

// Namespace, account and lease of the scheduler, as manifests and
// configuration name them.
const (
	schedulerNamespace = "device-scheduler"
	schedulerAccount   = "device-scheduler"
)

// versions has the API server serve what clients of older Kubernetes write, and
// groups of pods, without which a controller manager with their gate is stuck.
const versions = "--runtime-config=resource.k8s.io/v1alpha3=true,resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true," +
	"scheduling.k8s.io/v1beta1=true"

// tokenLifetime outlasts any run of the tests.
const tokenLifetime = 2 * time.Hour

// Cluster is a running control plane with the rights of the scheduler in it,
// and a scheduler. Tests use it one after the other.
type Cluster struct {
	*controlplane.ControlPlane
	// Client acts as administrator, without rate limit.
	Client kubernetes.Interface
	// Scheduler is the one that all tests share.
	Scheduler *Scheduler

	schedulerBinary string
	sandboxBinary   string
	token           string
	dir             string
	used            map[string]int // names of tests
}

// Start builds what is not built yet and starts everything. The caller must
// Stop the cluster. After an error nothing runs.
func Start(ctx context.Context) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "integration-")
	if err != nil {
		return nil, fmt.Errorf("create temporary directory: %w", err)
	}
	c, err := StartControlPlane(ctx, dir, controlplane.Options{APIServerFlags: []string{versions}, FeatureGates: gates})
	if err != nil {
		return nil, err
	}
	if c.Scheduler, err = c.NewScheduler("scheduler", SchedulerOptions{}); err == nil {
		err = c.Scheduler.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// StartControlPlane does as Start, without a scheduler: for tests that have one
// of their own. The cluster owns dir, which must be empty, and removes it at the
// end; the options need neither a binary nor a directory.
func StartControlPlane(ctx context.Context, dir string, options controlplane.Options) (*Cluster, error) {
	c := &Cluster{dir: dir, used: make(map[string]int)}
	if err := c.start(ctx, options); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, options controlplane.Options) (err error) {
	if c.sandboxBinary, err = binary(controlplane.BinaryVariable, "cmd/sandbox", c.dir); err != nil {
		return err
	}
	if c.schedulerBinary, err = binary(SchedulerVariable, "cmd/device-scheduler", c.dir); err != nil {
		return err
	}
	options.Binary, options.Dir = c.sandboxBinary, filepath.Join(c.dir, "control-plane")
	if c.ControlPlane, err = controlplane.Start(ctx, options); err != nil {
		return err
	}
	if c.Client, err = kubernetes.NewForConfig(c.RESTConfig()); err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	if err := install(ctx, c.Client); err != nil {
		return err
	}
	return c.requestToken(ctx)
}

// Token is what a pod of the scheduler's ServiceAccount would find mounted.
func (c *Cluster) Token() string { return c.token }

// requestToken gets the scheduler's token.
func (c *Cluster) requestToken(ctx context.Context) error {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds()))},
	}
	answer, err := c.Client.CoreV1().ServiceAccounts(schedulerNamespace).
		CreateToken(ctx, schedulerAccount, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("request a token for ServiceAccount %s/%s: %w", schedulerNamespace, schedulerAccount, err)
	}
	c.token = answer.Status.Token
	return nil
}

// writeKubeconfig writes a kubeconfig with the ServiceAccount's token, for the
// API server itself or for a proxy that is not nil.
func (c *Cluster) writeKubeconfig(path string, proxy *Proxy) error {
	config := c.RESTConfig()
	cluster := &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	if proxy != nil {
		cluster = &clientcmdapi.Cluster{Server: proxy.url, CertificateAuthorityData: proxy.ca}
	}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"sandbox": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{schedulerAccount: {Token: c.token}},
		Contexts:       map[string]*clientcmdapi.Context{"sandbox": {Cluster: "sandbox", AuthInfo: schedulerAccount}},
		CurrentContext: "sandbox",
	}, path)
}

// Stop ends scheduler and control plane and removes their files.
func (c *Cluster) Stop() error {
	var errs []error
	if c.Scheduler != nil {
		errs = append(errs, c.Scheduler.Stop())
	}
	if c.ControlPlane != nil {
		errs = append(errs, c.ControlPlane.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
