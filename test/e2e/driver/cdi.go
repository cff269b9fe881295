package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	cdi "tags.cncf.io/container-device-interface/specs-go"
)

// VariablePrefix begins the names of the environment variables that containers
// find.
const VariablePrefix = "DRA_DEVICE_"

// cdiClass is the part of a CDI device's kind that is the same for all drivers.
const cdiClass = "/device"

// Device is the value of such a variable: the device and what it was allocated
// for, for example "gpu.example.com/node-a/gpu-0 for request gpu of claim
// one/gpu". A device of which the claim has a share has the share's ID behind
// its name.
func Device(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) string {
	share := ""
	if result.ShareID != nil {
		share = " share " + string(*result.ShareID)
	}
	return fmt.Sprintf("%s/%s/%s%s for request %s of claim %s/%s",
		result.Driver, result.Pool, result.Device, share, result.Request, claim.Namespace, claim.Name)
}

// Spec is the CDI file of a claim: one CDI device for each device of the driver
// that the claim's allocation names, in its order. A container that gets such a
// CDI device gets the variable. The CDI names contain the UID of the claim, since
// runtimes cache them.
func Spec(driver string, claim *resourceapi.ResourceClaim) *cdi.Spec {
	spec := &cdi.Spec{Version: "0.6.0", Kind: driver + cdiClass}
	for i, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != driver {
			continue
		}
		variable := fmt.Sprintf("%s%s_%d", VariablePrefix, strings.ReplaceAll(string(claim.UID), "-", "_"), i)
		spec.Devices = append(spec.Devices, cdi.Device{
			Name:        fmt.Sprintf("%s-%d", claim.UID, i),
			Annotations: map[string]string{identity: identify(&result)},
			ContainerEdits: cdi.ContainerEdits{
				Env: []string{variable + "=" + Device(claim, &result)},
			},
		})
	}
	return spec
}

// identity is the annotation of a CDI device that says which device, or which
// share of a device, it stands for.
const identity = "device"

func identify(result *resourceapi.DeviceRequestAllocationResult) string {
	id := result.Pool + "/" + result.Device
	if result.ShareID != nil {
		id += "/" + string(*result.ShareID)
	}
	return id
}

// directory holds the CDI files of one driver. They are its memory as well.
type directory struct{ path, driver string }

func (d directory) file(claim types.UID) string {
	return filepath.Join(d.path, d.driver+"-"+string(claim)+".json")
}

// write replaces the file of a claim in one step: runtimes read the directory
// at any time.
func (d directory) write(claim types.UID, spec *cdi.Spec) error {
	content, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return fmt.Errorf("encode CDI file: %w", err)
	}
	// A file with another ending is none for the runtime.
	temporary := d.file(claim) + ".tmp"
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return fmt.Errorf("write CDI file: %w", err)
	}
	if err := os.Rename(temporary, d.file(claim)); err != nil {
		return fmt.Errorf("write CDI file: %w", err)
	}
	return nil
}

// remove removes the file of a claim, if there is one.
func (d directory) remove(claim types.UID) error {
	if err := os.Remove(d.file(claim)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove CDI file: %w", err)
	}
	return nil
}

// read returns the files of all claims.
func (d directory) read() (map[types.UID]*cdi.Spec, error) {
	paths, err := filepath.Glob(filepath.Join(d.path, d.driver+"-*.json"))
	if err != nil {
		return nil, fmt.Errorf("list CDI files: %w", err)
	}
	specs := make(map[types.UID]*cdi.Spec, len(paths))
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read CDI file: %w", err)
		}
		spec := &cdi.Spec{}
		if err := json.Unmarshal(content, spec); err != nil {
			return nil, fmt.Errorf("read CDI file %s: %w", path, err)
		}
		uid := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), d.driver+"-"), ".json")
		specs[types.UID(uid)] = spec
	}
	return specs, nil
}
