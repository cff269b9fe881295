package integration

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/cmd/sandbox/demo"
	"github.com/device-scheduler/device-scheduler/cmd/sandbox/hardware"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// TestExamples plays the examples that the demo leaves out, because they need
// feature gates that are off by default, and checks them as the demo does.
func TestExamples(t *testing.T) {
	examples, err := demo.LoadExamples(filepath.Join("..", "..", "manifests", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, example := range examples {
		if len(example.Expect.FeatureGates) == 0 {
			continue // the demo plays it
		}
		played++
		t.Run(example.Name, func(t *testing.T) {
			for _, gate := range example.Expect.FeatureGates {
				if !harness.GateOn(gate) {
					t.Fatalf("nobody plays this example: turn %s on in harness/gates.go", gate)
				}
			}
			play(t, example)
		})
	}
	if played == 0 {
		t.Error("no example needs feature gates")
	}
}

func play(t *testing.T, example *demo.Example) {
	e := env(t)
	applyHardware(t, e, "alpha")
	stage, err := demo.NewStage(cluster.RESTConfig(), e.Client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := stage.Remove(ctx, example); err != nil {
			t.Errorf("remove: %v", err)
		}
	})
	if err := stage.Apply(t.Context(), example); err != nil {
		t.Fatal(err)
	}
	e.Await("what expect.yaml promises", func(ctx context.Context) string {
		verdicts, err := stage.Look(ctx, example)
		if err != nil {
			return err.Error()
		}
		problems := ""
		for _, verdict := range verdicts {
			for _, problem := range verdict.Problems {
				problems += "\npod " + verdict.Pod + ": " + problem
			}
		}
		return problems
	})
}

// applyHardware creates the machines of a ready-made cluster, waits until pods
// can run on them, and removes them at the end of the test.
func applyHardware(t *testing.T, e *harness.Env, name string) {
	t.Helper()
	objects, err := hardware.Cluster(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeHardware(t, e, objects) })
	if err := hardware.Apply(t.Context(), e.Client, objects); err != nil {
		t.Fatal(err)
	}
	e.Await("ready nodes", func(ctx context.Context) string {
		for _, node := range objects.Nodes {
			current, err := e.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if len(current.Spec.Taints) > 0 {
				return "node " + node.Name + " has taints"
			}
		}
		return ""
	})
}

func removeHardware(t *testing.T, e *harness.Env, objects *hardware.Objects) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
	check := func(err error) {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("remove hardware: %v", err)
		}
	}
	for _, slice := range objects.Slices {
		check(e.Client.ResourceV1().ResourceSlices().Delete(ctx, slice.Name, now))
	}
	for _, node := range objects.Nodes {
		check(e.Client.CoreV1().Nodes().Delete(ctx, node.Name, now))
	}
	for _, class := range objects.Classes {
		check(e.Client.ResourceV1().DeviceClasses().Delete(ctx, class.Name, now))
	}
}
