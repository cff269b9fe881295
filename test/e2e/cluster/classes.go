//go:build linux

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
)

// Names of the DeviceClasses, and of the extended resource that stands for the
// first.
const (
	GPU       = "gpu"
	Partition = "partition"
	Shared    = "shared"
	NIC       = "nic"

	GPUResource = "example.com/gpu"
)

func (c *Cluster) createClasses(ctx context.Context) error {
	kind := func(driver, kind string) string {
		return fmt.Sprintf("device.driver == %[1]q && device.attributes[%[1]q].kind == %[2]q", driver, kind)
	}
	gpu := builders.Class(GPU).Select(kind(driver.GPU, "gpu")).Obj()
	gpu.Spec.ExtendedResourceName = ptr.To(GPUResource)
	for _, class := range []*builders.ClassBuilder{
		builders.Class(Partition).Select(kind(driver.GPU, "partition")),
		builders.Class(Shared).Select(kind(driver.GPU, "shared")),
		builders.Class(NIC).Select(kind(driver.NIC, "nic")),
	} {
		if _, err := c.Client.ResourceV1().DeviceClasses().Create(ctx, class.Obj(), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create class: %w", err)
		}
	}
	if _, err := c.Client.ResourceV1().DeviceClasses().Create(ctx, gpu, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create class: %w", err)
	}
	return nil
}

// slicesOfNode is how many ResourceSlices the drivers of a node publish: the whole
// GPUs, the partitions and their counters, the shared GPU, the NICs.
const slicesOfNode = 5

// awaitNodes waits until pods can run on nodes and their devices are published.
func (c *Cluster) awaitNodes(ctx context.Context, names ...string) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		for _, name := range names {
			if missing = c.missing(ctx, name); missing != "" {
				return false, c.Failed()
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait for nodes: %w: %s", err, missing)
	}
	return nil
}

// missing says why a node is of no use yet.
func (c *Cluster) missing(ctx context.Context, name string) string {
	node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Sprintf("node %s is not ready: %s", name, condition.Message)
		}
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Sprintf("node %s has the taints %v", name, node.Spec.Taints)
	}
	list, err := c.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return err.Error()
	}
	if len(list.Items) != slicesOfNode {
		return fmt.Sprintf("node %s has %d ResourceSlices, not %d", name, len(list.Items), slicesOfNode)
	}
	return ""
}

// interval is the pause between two looks at the API server, and patience is far
// longer than anything should take.
const (
	interval = 100 * time.Millisecond
	patience = 90 * time.Second
)
