package hardware_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/hardware"
)

// writes returns the verbs and kinds of what changed something, and forgets them.
func writes(client *fake.Clientset) []string {
	var got []string
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			got = append(got, action.GetVerb()+" "+action.GetResource().Resource+"/"+action.GetSubresource())
		}
	}
	client.ClearActions()
	return got
}

func TestApplyTwiceWritesOnce(t *testing.T) {
	ctx := t.Context()
	client := fake.NewClientset()
	objects, err := hardware.Cluster("demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := hardware.Apply(ctx, client, objects); err != nil {
		t.Fatal(err)
	}
	if got, want := len(writes(client)), len(objects.Nodes)+len(objects.Slices)+len(objects.Classes); got != want {
		t.Errorf("first Apply wrote %d times, want %d", got, want)
	}
	if err := hardware.Apply(ctx, client, objects); err != nil {
		t.Fatal(err)
	}
	if got := writes(client); len(got) > 0 {
		t.Errorf("second Apply wrote %v, want nothing", got)
	}
}

// Apply brings hardware up to date and leaves alone what others wrote.
func TestApplyUpdates(t *testing.T) {
	ctx := t.Context()
	client := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "node-uid", Labels: map[string]string{"team": "blue", corev1.LabelTopologyZone: "old"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Capacity:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		},
	})
	objects, err := hardware.Profile(hardware.Machine{Name: "edge-1", Profile: "edge", Zone: "zone-b"})
	if err != nil {
		t.Fatal(err)
	}
	// As a description out of a real cluster would have it.
	objects.Slices[0].ResourceVersion = "4711"
	objects.Slices[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "edge-1", UID: "elsewhere"}}
	if err := hardware.Apply(ctx, client, objects); err != nil {
		t.Fatal(err)
	}
	want := []string{"update nodes/", "update nodes/status", "create resourceslices/", "create resourceslices/"}
	if diff := cmp.Diff(want, writes(client)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}

	node, err := client.CoreV1().Nodes().Get(ctx, "edge-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if node.Labels["team"] != "blue" || node.Labels[corev1.LabelTopologyZone] != "zone-b" {
		t.Errorf("got labels %v, want the old team and the new zone", node.Labels)
	}
	if len(node.Spec.Taints) != 1 || len(node.Status.Conditions) != 1 {
		t.Errorf("got taints %v and conditions %v, want both as they were", node.Spec.Taints, node.Status.Conditions)
	}
	if cpu := node.Status.Capacity.Cpu().String(); cpu != "40" {
		t.Errorf("got capacity of %s CPUs, want 40", cpu)
	}
	slice, err := client.ResourceV1().ResourceSlices().Get(ctx, objects.Slices[0].Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantOwners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "edge-1", UID: "node-uid", Controller: new(true)}}
	if diff := cmp.Diff(wantOwners, slice.OwnerReferences); diff != "" {
		t.Errorf("owners of the slice (-want +got):\n%s", diff)
	}

	objects.Slices[0].Spec.Pool.Generation++
	if err := hardware.Apply(ctx, client, objects); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"update resourceslices/"}, writes(client)); diff != "" {
		t.Errorf("writes after a change of one slice (-want +got):\n%s", diff)
	}

	// A node that was deleted and made anew is another owner.
	node.UID = "second-uid"
	if err := client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), node, ""); err != nil {
		t.Fatal(err)
	}
	if err := hardware.Apply(ctx, client, objects); err != nil {
		t.Fatal(err)
	}
	slice, err = client.ResourceV1().ResourceSlices().Get(ctx, objects.Slices[0].Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(slice.OwnerReferences) != 1 || slice.OwnerReferences[0].UID != "second-uid" {
		t.Errorf("got owners %v, want the new node alone", slice.OwnerReferences)
	}
}

// A conflict with another writer is retried, not reported.
func TestApplyRetriesConflict(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "plain-1"}})
	conflicts := 0
	client.PrependReactor("update", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts > 1 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "plain-1", errors.New("changed meanwhile"))
	})
	objects, err := hardware.Profile(hardware.Machine{Name: "plain-1", Profile: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	if err := hardware.Apply(t.Context(), client, objects); err != nil {
		t.Fatal(err)
	}
	if conflicts < 2 {
		t.Errorf("got %d updates, want a second one after the conflict", conflicts)
	}
}
