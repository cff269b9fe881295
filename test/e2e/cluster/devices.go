//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
)

// Sees checks the devices of a container: what the container printed about them,
// what the status of the pod's claims says, and what the test expects must be the
// same. The latter is written as request=pool/device, in any order. Of a pod that
// is not running yet it waits for the container's output.
func (e *Env) Sees(pod, container string, want ...string) {
	e.t.Helper()
	printed := e.printed(pod, container)
	present := e.Pod(pod)
	found, err := e.allocated(e.t.Context(), present, container)
	e.Check(err, "read the claims of container %s of pod %s", container, pod)

	var statuses, short []string
	for _, d := range found {
		if !strings.HasPrefix(d.result.Pool, present.Spec.NodeName) {
			e.t.Errorf("pod %s runs on node %s and has the device %s/%s", pod, present.Spec.NodeName, d.result.Pool, d.result.Device)
		}
		statuses = append(statuses, driver.Device(d.claim, &d.result))
		short = append(short, fmt.Sprintf("%s=%s/%s", d.result.Request, d.result.Pool, d.result.Device))
	}
	slices.Sort(statuses)
	if diff := cmp.Diff(statuses, printed, cmpopts.EquateEmpty()); diff != "" {
		e.t.Errorf("container %s of pod %s printed other devices than the status of its claims has (-status +printed):\n%s", container, pod, diff)
	}
	slices.Sort(short)
	slices.Sort(want)
	if diff := cmp.Diff(want, short, cmpopts.EquateEmpty()); diff != "" {
		e.t.Errorf("container %s of pod %s got other devices than it should (-want +got):\n%s", container, pod, diff)
	}
	if e.t.Failed() {
		return
	}
	if len(printed) == 0 {
		e.Say("%s/%s printed no device, claim status: the same", pod, container)
	}
	for _, line := range printed {
		e.Say("%s/%s printed %s, claim status: the same", pod, container, line)
	}
}

// Took is the device of a pod's only container, of which it is not known in
// advance which one it will be; it is checked as Sees does and returned as
// pool/device.
func (e *Env) Took(pod string) string {
	e.t.Helper()
	e.printed(pod, "main")
	found, err := e.allocated(e.t.Context(), e.Pod(pod), "main")
	e.Check(err, "read the claims of pod %s", pod)
	if len(found) != 1 {
		e.t.Fatalf("pod %s has %d devices, not one", pod, len(found))
	}
	device := found[0].result.Pool + "/" + found[0].result.Device
	e.Sees(pod, "main", found[0].result.Request+"="+device)
	return device
}

// printed waits until a container has printed all its devices, and returns them.
func (e *Env) printed(pod, container string) []string {
	e.t.Helper()
	var devices []string
	e.Await("container "+container+" of pod "+pod+" to print its devices", func(ctx context.Context) string {
		output, err := e.output(ctx, pod, container)
		lines := strings.Split(strings.TrimSpace(output), "\n")
		if err != nil || lines[len(lines)-1] != "ready" {
			p, readErr := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, pod, metav1.GetOptions{})
			if readErr != nil {
				return readErr.Error()
			}
			// The pod says more than that there is no log yet.
			return fmt.Sprintf("it printed %q; pod: %s", output, e.describe(ctx, p))
		}
		devices = nil
		for _, line := range lines[:len(lines)-1] {
			devices = append(devices, strings.TrimPrefix(line, "device "))
		}
		return ""
	})
	return devices
}

// output is what a container printed, as kubectl logs shows it.
func (e *Env) output(ctx context.Context, pod, container string) (_ string, err error) {
	stream, err := e.Client.CoreV1().Pods(e.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	output, err := io.ReadAll(stream)
	return string(output), err
}

// allocatedDevice is a device that a claim has for a container.
type allocatedDevice struct {
	claim  *resourceapi.ResourceClaim
	result resourceapi.DeviceRequestAllocationResult
}

// allocated returns the devices that a container must have, by the status of the
// pod's claims: all of a claim, or those of the request that the container names.
func (e *Env) allocated(ctx context.Context, pod *corev1.Pod, container string) ([]allocatedDevice, error) {
	var devices []allocatedDevice
	add := func(claim, request string) error {
		c, err := e.Client.ResourceV1().ResourceClaims(e.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c.Status.Allocation == nil {
			return fmt.Errorf("claim %s is not allocated", claim)
		}
		for _, result := range c.Status.Allocation.Devices.Results {
			base, _, _ := strings.Cut(result.Request, "/")
			if request == "" || request == base {
				devices = append(devices, allocatedDevice{c, result})
			}
		}
		return nil
	}
	spec := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if spec < 0 {
		return nil, errors.New("there is no such container")
	}
	for _, use := range pod.Spec.Containers[spec].Resources.Claims {
		name, err := claimOf(pod, use.Name)
		if err != nil {
			return nil, err
		}
		if err := add(name, use.Request); err != nil {
			return nil, err
		}
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		for _, mapping := range status.RequestMappings {
			if mapping.ContainerName != container {
				continue
			}
			if err := add(status.ResourceClaimName, mapping.RequestName); err != nil {
				return nil, err
			}
		}
	}
	return devices, nil
}

// claimOf is the name of the claim behind an entry of a pod.
func claimOf(pod *corev1.Pod, entry string) (string, error) {
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.Name == entry && claim.ResourceClaimName != nil {
			return *claim.ResourceClaimName, nil
		}
	}
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.Name == entry && status.ResourceClaimName != nil {
			return *status.ResourceClaimName, nil
		}
	}
	return "", fmt.Errorf("pod %s has no claim for %q", pod.Name, entry)
}

// ClaimOf is the name of the claim behind an entry of a pod.
func (e *Env) ClaimOf(pod, entry string) string {
	e.t.Helper()
	name, err := claimOf(e.Pod(pod), entry)
	e.Check(err, "find claim")
	return name
}
