package controlplane_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/controlplane"
	"github.com/device-scheduler/device-scheduler/cmd/sandbox/hardware"
)

// One control plane goes through everything that demo and tests ask of it. The
// parts build on one another and run in this order.
func TestControlPlane(t *testing.T) {
	cp := start(t, controlplane.Options{})
	client := kubernetes.NewForConfigOrDie(cp.RESTConfig())
	f := &fixture{cp: cp, client: client}

	parts := []struct {
		name string
		run  func(*testing.T)
	}{
		{"hardware is accepted", f.hardware},
		{"nodes become ready", f.nodesReady},
		{"a bound pod runs until it is deleted", f.podLife},
		{"a claim is made from its template", f.claimFromTemplate},
		{"a job completes", f.job},
		{"a ServiceAccount's token works, within its rights", f.serviceAccountToken},
		{"kubectl works", f.kubectl},
		{"clients survive kill -9 of the API server", f.killAPIServer},
		{"clients survive kill -9 of etcd", f.killEtcd},
		{"pods run after kill -9 of kwok", f.killKwok},
		{"an unasked death is reported", f.unaskedDeath},
		{"stop leaves nothing behind", f.stop},
	}
	for _, part := range parts {
		if !t.Run(part.name, part.run) {
			t.FailNow()
		}
	}
}

// demoNodes is the number of machines of the cluster "demo".
const demoNodes = 9

type fixture struct {
	cp     *controlplane.ControlPlane
	client kubernetes.Interface
}

func (f *fixture) hardware(t *testing.T) {
	objects, err := hardware.Cluster("demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := hardware.Apply(t.Context(), f.client, objects); err != nil {
		t.Fatal(err)
	}
	versions := func() []string {
		list, err := f.client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, slice := range list.Items {
			got = append(got, slice.Name+"@"+slice.ResourceVersion)
			if len(slice.OwnerReferences) != 1 {
				t.Errorf("slice %s has owners %v, want its node", slice.Name, slice.OwnerReferences)
			}
		}
		return got
	}
	before := versions()
	if len(before) != len(objects.Slices) {
		t.Errorf("got slices %v, want %d", before, len(objects.Slices))
	}
	if err := hardware.Apply(t.Context(), f.client, objects); err != nil {
		t.Fatal(err)
	}
	if after := versions(); !slices.Equal(before, after) {
		t.Errorf("a second Apply changed slices:\n%v\n%v", before, after)
	}
}

func (f *fixture) nodesReady(t *testing.T) {
	await(t, "ready nodes without taints", func(ctx context.Context) string {
		nodes, err := f.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var waiting []string
		for _, node := range nodes.Items {
			ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
			if !ready || len(node.Spec.Taints) > 0 {
				waiting = append(waiting, fmt.Sprintf("%s: ready %t, taints %v", node.Name, ready, node.Spec.Taints))
			}
		}
		if len(nodes.Items) != demoNodes {
			return fmt.Sprintf("%d nodes", len(nodes.Items))
		}
		return strings.Join(waiting, "; ")
	})
	leases, err := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(leases.Items) != demoNodes {
		t.Errorf("got %d node leases, want %d: without them the nodes do not stay ready", len(leases.Items), demoNodes)
	}
}

// pod returns a pod of one container.
func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
}

// bind does by hand what a scheduler does last.
func (f *fixture) bind(t *testing.T, pod, node string) {
	t.Helper()
	err := f.client.CoreV1().Pods(metav1.NamespaceDefault).Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if _, err := f.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) awaitPhase(t *testing.T, name string, want corev1.PodPhase) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	await(t, "pod "+name+" "+string(want), func(ctx context.Context) (problem string) {
		var err error
		if pod, err = f.client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if pod.Status.Phase != want {
			return string(pod.Status.Phase)
		}
		return ""
	})
	return pod
}

func (f *fixture) podLife(t *testing.T) {
	f.create(t, pod("alive"))
	f.bind(t, "alive", "plain-1")
	running := f.awaitPhase(t, "alive", corev1.PodRunning)
	if len(running.Status.ContainerStatuses) != 1 || !running.Status.ContainerStatuses[0].Ready {
		t.Errorf("got container statuses %v, want one that is ready", running.Status.ContainerStatuses)
	}
	if running.Status.HostIP != "10.1.0.5" || running.Status.PodIP == "" {
		t.Errorf("got host IP %q and pod IP %q, want the node's address and some pod address", running.Status.HostIP, running.Status.PodIP)
	}
	pods := f.client.CoreV1().Pods(metav1.NamespaceDefault)
	if err := pods.Delete(t.Context(), "alive", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "deleted pod to go away", func(ctx context.Context) string {
		_, err := pods.Get(ctx, "alive", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("error %v", err)
	})
}

func (f *fixture) claimFromTemplate(t *testing.T) {
	template := &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "one-gpu"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com"}}},
		}}},
	}
	_, err := f.client.ResourceV1().ResourceClaimTemplates(metav1.NamespaceDefault).Create(t.Context(), template, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claiming := pod("claiming")
	claiming.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template.Name}}
	claiming.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	f.create(t, claiming)
	await(t, "claim of pod claiming", func(ctx context.Context) string {
		pod, err := f.client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "claiming", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if len(pod.Status.ResourceClaimStatuses) != 1 || pod.Status.ResourceClaimStatuses[0].ResourceClaimName == nil {
			return fmt.Sprintf("claim statuses %v", pod.Status.ResourceClaimStatuses)
		}
		name := *pod.Status.ResourceClaimStatuses[0].ResourceClaimName
		claim, err := f.client.ResourceV1().ResourceClaims(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if !metav1.IsControlledBy(claim, pod) {
			return fmt.Sprintf("owners %v", claim.OwnerReferences)
		}
		return ""
	})
}

func (f *fixture) job(t *testing.T) {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "work"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"sandbox.device-scheduler/run-for": "10ms"}},
			Spec:       pod("").Spec,
		}},
	}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	jobs := f.client.BatchV1().Jobs(metav1.NamespaceDefault)
	if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var name string
	await(t, "the job's pod", func(ctx context.Context) string {
		pods, err := f.client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "job-name=work"})
		if err != nil {
			return err.Error()
		}
		if len(pods.Items) != 1 {
			return fmt.Sprintf("%d pods", len(pods.Items))
		}
		name = pods.Items[0].Name
		return ""
	})
	f.bind(t, name, "plain-1")
	await(t, "the job to complete", func(ctx context.Context) string {
		job, err := jobs.Get(ctx, "work", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if job.Status.CompletionTime == nil {
			return fmt.Sprintf("status %v", job.Status)
		}
		return ""
	})
}

func (f *fixture) serviceAccountToken(t *testing.T) {
	ctx := t.Context()
	token, err := f.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).CreateToken(ctx, "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(f.cp.RESTConfig())
	config.BearerToken = token.Status.Token
	client := kubernetes.NewForConfigOrDie(config)
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:default:default"; got != want {
		t.Errorf("got user %q, want %q", got, want)
	}
	if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list nodes without a role: got error %v, want forbidden", err)
	}
}

func (f *fixture) kubectl(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), sandboxBinary(t), "kubectl",
		"--kubeconfig", f.cp.Kubeconfig(), "get", "nodes", "-o", "name")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := "node/edge-1\nnode/fabric-1\nnode/inference-1\nnode/partition-1\nnode/plain-1\nnode/shared-1\nnode/split-1\nnode/training-1\nnode/training-2\n"
	if string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// kill kills a component, sees that it is gone, and starts it again.
func (f *fixture) kill(t *testing.T, name string) {
	t.Helper()
	component := f.cp.Component(name)
	pid := component.PID()
	if err := component.Kill(); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Fatalf("%s (process %d) is still there after Kill", name, pid)
	}
	if err := component.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := component.PID(); again == pid || again == 0 {
		t.Errorf("got process %d after the restart, before it was %d", again, pid)
	}
}

// A client from before the kill goes on afterwards, and so do kwok's watches.
func (f *fixture) killAPIServer(t *testing.T) {
	f.kill(t, controlplane.APIServer)
	name := "after-apiserver"
	f.create(t, pod(name))
	f.bind(t, name, "plain-1")
	f.awaitPhase(t, name, corev1.PodRunning)
}

func (f *fixture) killEtcd(t *testing.T) {
	f.kill(t, controlplane.Etcd)
	name := "after-etcd"
	await(t, "pod creation", func(ctx context.Context) string {
		_, err := f.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod(name), metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			return ""
		}
		return err.Error()
	})
	f.bind(t, name, "plain-1")
	f.awaitPhase(t, name, corev1.PodRunning)
}

func (f *fixture) killKwok(t *testing.T) {
	f.create(t, pod("before-kwok"))
	f.kill(t, controlplane.Kwok)
	f.bind(t, "before-kwok", "split-1")
	f.awaitPhase(t, "before-kwok", corev1.PodRunning)
}

func (f *fixture) unaskedDeath(t *testing.T) {
	select {
	case err := <-f.cp.Failed():
		t.Fatalf("a death that was asked for was reported: %v", err)
	default:
	}
	if err := syscall.Kill(f.cp.Component(controlplane.Kwok).PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the report", func(context.Context) string {
		select {
		case err := <-f.cp.Failed():
			if !strings.HasPrefix(err.Error(), "kwok ended unexpectedly (signal: killed)") {
				t.Errorf("got report %q", err)
			}
			return ""
		default:
			return "no report"
		}
	})
	if err := f.cp.Component(controlplane.Kwok).Kill(); err == nil {
		t.Error("killing a dead component: got no error")
	}
}

func (f *fixture) stop(t *testing.T) {
	pids := map[string]int{}
	for _, component := range f.cp.Components() {
		if pid := component.PID(); pid != 0 {
			pids[component.Name()] = pid
		}
	}
	if len(pids) != 3 { // kwok is dead
		t.Errorf("got running components %v, want 3", pids)
	}
	if err := f.cp.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range pids {
		if alive(pid) {
			t.Errorf("%s (process %d) is still there", name, pid)
		}
	}
	if exists(f.cp.Dir()) {
		t.Errorf("temporary directory %s is still there", f.cp.Dir())
	}
	if err := f.cp.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}
