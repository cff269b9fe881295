//go:build linux

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/device-scheduler/device-scheduler/test/e2e/driver"
)

// history follows all claims through the whole run, event by event, so that
// nothing is missed that lasts only for a moment. Safe for concurrent use.
type history struct {
	mutex sync.Mutex
	// holders are the claims, by UID, that have an exclusive device now, by device.
	holders map[string][]types.UID
	// devices is what a claim that was made for a pod had last, as the driver shows
	// it, by the UID of the pod.
	devices map[types.UID][]string
	// twice are the devices that were in two allocations at a time, and not
	// reported yet.
	twice []string
}

// follow starts to follow the claims, of which there are none yet. It watches by
// itself: an informer may leave states out that do not last.
func (h *history) follow(ctx context.Context, c *Cluster) error {
	h.holders, h.devices = make(map[string][]types.UID), make(map[types.UID][]string)
	claims := c.Client.ResourceV1().ResourceClaims(metav1.NamespaceAll)
	list, err := claims.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("follow claims: %w", err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return claims.Watch(ctx, options)
		},
	})
	if err != nil {
		return fmt.Errorf("follow claims: %w", err)
	}
	go func() {
		for event := range watcher.ResultChan() {
			if claim, ok := event.Object.(*resourceapi.ResourceClaim); ok {
				h.see(claim, event.Type == watch.Deleted)
			}
		}
	}()
	return nil
}

// see learns a claim's present state, or that it is gone.
func (h *history) see(claim *resourceapi.ResourceClaim, gone bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.drop(claim.UID)
	if gone || claim.Status.Allocation == nil {
		return
	}
	var devices []string
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		devices = append(devices, driver.Device(claim, result))
		if result.ShareID != nil {
			continue
		}
		device := result.Driver + "/" + result.Pool + "/" + result.Device
		h.holders[device] = append(h.holders[device], claim.UID)
		if len(h.holders[device]) > 1 {
			h.twice = append(h.twice, fmt.Sprintf("device %s was allocated to %s/%s and to another claim", device, claim.Namespace, claim.Name))
		}
	}
	slices.Sort(devices)
	if owner := metav1.GetControllerOf(claim); owner != nil {
		h.devices[owner.UID] = devices
	}
}

// drop needs h.mutex.
func (h *history) drop(uid types.UID) {
	for device, holders := range h.holders {
		h.holders[device] = slices.DeleteFunc(holders, func(holder types.UID) bool { return holder == uid })
	}
}

// takeTwice returns what was wrong since the last call.
func (h *history) takeTwice() []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	twice := h.twice
	h.twice = nil
	return twice
}

func (h *history) of(pod types.UID) []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.devices[pod]
}

// Finished waits until a pod with one claim from a template has done its work, and
// checks what it printed as Sees does. The claim is gone with the work, so its last
// status is used. Its name may not be that in the pod's status any more: the
// controller can make another one before it sees that the pod has finished.
func (e *Env) Finished(pod string) {
	e.t.Helper()
	printed := e.printed(pod, "main")
	if diff := cmp.Diff(e.history.of(e.Pod(pod).UID), printed); diff != "" {
		e.t.Errorf("pod %s printed other devices than the status of its claim had (-status +printed):\n%s", pod, diff)
	}
	if len(printed) != 1 {
		e.t.Errorf("pod %s printed %d devices, not one", pod, len(printed))
	}
	e.Say("%s/main printed %s, claim status: the same", pod, strings.Join(printed, ", "))
}
