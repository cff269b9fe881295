package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
)

// Call is one claim in one call by the kubelet.
type Call struct {
	// Method is Prepare or Unprepare.
	Method string
	// Claim is the namespace and name of the claim.
	Claim string
	// Error is what was answered, empty for success.
	Error string
}

// Values of Call.Method.
const (
	Prepare   = "prepare"
	Unprepare = "unprepare"
)

// Plugin answers the kubelet. It implements kubeletplugin.DRAPlugin and is safe
// for concurrent use.
type Plugin struct {
	driver string
	files  directory
	crash  func() // ends the process

	mutex    sync.Mutex
	hardware *Hardware
	calls    []Call
	// failures is how many further claims fail to be prepared.
	failures int
	// crashes says that the process ends when the next claim is prepared.
	crashes bool
}

// NewPlugin returns the plugin of a driver that keeps its CDI files in a
// directory, which must exist. The plugin owns the hardware.
func NewPlugin(driver, cdiDirectory string, hardware *Hardware, crash func()) *Plugin {
	return &Plugin{driver: driver, files: directory{cdiDirectory, driver}, hardware: hardware, crash: crash}
}

// PrepareResourceClaims makes the CDI devices of claims. What has been prepared
// is prepared once more, with the same result.
func (p *Plugin) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	results := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	for _, claim := range claims {
		devices, err := p.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
		p.record(ctx, Prepare, claim.Namespace+"/"+claim.Name, err)
	}
	return results, nil
}

// prepare needs p.mutex.
func (p *Plugin) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	if p.failures > 0 {
		p.failures--
		return nil, fmt.Errorf("prepare claim %s/%s: told to fail", claim.Namespace, claim.Name)
	}
	if err := p.check(claim); err != nil {
		return nil, fmt.Errorf("prepare claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	spec := Spec(p.driver, claim)
	if err := p.files.write(claim.UID, spec); err != nil {
		return nil, fmt.Errorf("prepare claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if p.crashes {
		p.crash() // the work is done, and nobody knows
	}
	var devices []kubeletplugin.Device
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != p.driver {
			continue
		}
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			ShareID:      result.ShareID,
			CDIDeviceIDs: []string{spec.Kind + "=" + spec.Devices[len(devices)].Name},
		})
	}
	return devices, nil
}

// check refuses what no scheduler may decide: a device that the node does not
// have, or that is prepared for another claim. A device that was withdrawn since
// is still there.
func (p *Plugin) check(claim *resourceapi.ResourceClaim) error {
	prepared, err := p.files.read()
	if err != nil {
		return err
	}
	holders := make(map[string]types.UID)
	for uid, spec := range prepared {
		for _, device := range spec.Devices {
			holders[device.Annotations[identity]] = uid
		}
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != p.driver {
			continue
		}
		if !p.hardware.Has(result.Pool, result.Device) {
			return fmt.Errorf("node %s has no device %s/%s", p.hardware.node, result.Pool, result.Device)
		}
		if holder, found := holders[identify(&result)]; found && holder != claim.UID {
			return fmt.Errorf("device %s/%s is prepared for the claim with UID %s", result.Pool, result.Device, holder)
		}
	}
	return nil
}

// UnprepareResourceClaims removes the CDI devices of claims.
func (p *Plugin) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	results := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		err := p.files.remove(claim.UID)
		results[claim.UID] = err
		p.record(ctx, Unprepare, claim.Namespace+"/"+claim.Name, err)
	}
	return results, nil
}

// record needs p.mutex.
func (p *Plugin) record(ctx context.Context, method, claim string, err error) {
	call := Call{Method: method, Claim: claim}
	if err != nil {
		call.Error = err.Error()
	}
	p.calls = append(p.calls, call)
	klog.FromContext(ctx).Info("The kubelet called", "method", method, "claim", claim, "error", call.Error)
}

// HandleError logs what went wrong in the background. The driver goes on: a test
// sees that something is missing.
func (p *Plugin) HandleError(ctx context.Context, err error, message string) {
	klog.FromContext(ctx).Error(err, message, "recoverable", errors.Is(err, kubeletplugin.ErrRecoverable))
}

// WatchHealthStatus is not called: Run turns the service off.
func (p *Plugin) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}
