package deviceallocationconformance

import (
	"errors"
	"fmt"
	"math"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured/internal"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/inventory"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
)

// stockRefusal words the refusal of a claim as the suite expects it.
func stockRefusal(claims []*resourceapi.ResourceClaim, err error) error {
	var refused *problem.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	where := fmt.Sprintf("claim %s, request %s", refused.Claim, refused.Request)
	if _, sub, found := strings.Cut(refused.Request, "/"); found && refused.Cause == problem.FeatureDisabled {
		where = fmt.Sprintf("claim %s, subrequest %s", refused.Claim, sub)
	}
	switch refused.Cause {
	case problem.ClassUnavailable:
		return fmt.Errorf("%s: could not retrieve device class %s: %w", where, refused.Class, refused.Err)
	case problem.FeatureDisabled:
		return fmt.Errorf("%s: %s", where, disabledTexts[refused.Feature])
	case problem.UnknownRequestType:
		return fmt.Errorf("%s: missing device class name (unsupported request type?)", where)
	case problem.UnknownAllocationMode:
		return fmt.Errorf("%s: unsupported count mode %s", where, refused.Mode)
	case problem.UnknownSelector:
		return fmt.Errorf("%s: CEL expression empty (unsupported selector type?)", where)
	case problem.UnknownConstraint:
		return fmt.Errorf("claim %s: empty constraint (unsupported constraint type?)", refused.Claim)
	case problem.BadExpression:
		return fmt.Errorf("%s: CEL compile error: %w", where, refused.Err)
	case problem.TooManyDevices:
		return fmt.Errorf("claim %s, request %s: adding devices exceeds the claim limit", refused.Claim, overLimit(claims, refused.Claim))
	default:
		return err
	}
}

// disabledTexts has what kube-scheduler says about the features of claims that
// are off.
var disabledTexts = map[device.Feature]string{
	device.AdminAccess:        "admin access is requested, but the feature is disabled",
	device.ConsumableCapacity: "has capacity requests, but the DRAConsumableCapacity feature is disabled",
	device.DerivedAttributes:  "cannot handle request with derived attributes, the feature is disabled",
	device.PrioritizedList:    "has subrequests, but the DRAPrioritizedList feature is disabled",
}

// overLimit names the request with which a claim, refused as a whole, asks for
// more devices than it can hold.
func overLimit(claims []*resourceapi.ResourceClaim, name string) string {
	for _, claim := range claims {
		total := int64(0)
		for _, request := range claim.Spec.Devices.Requests {
			least := int64(math.MaxInt64)
			if request.Exactly != nil {
				least = request.Exactly.Count
			}
			for _, sub := range request.FirstAvailable {
				least = min(least, sub.Count)
			}
			if least > resourceapi.AllocationResultsMaxSize-total && claim.Name == name {
				return request.Name
			}
			total += least
		}
	}
	return ""
}

// stockVerdict words the rejection of a node as the suite expects it: most of
// them are no error at all.
func stockVerdict(p *problem.Problem, node allocator.Node, err error) error {
	var rejection *allocator.Rejection
	var failed *allocator.SelectorError
	switch {
	case errors.As(err, &failed) && failed.Device.Malformed != nil:
		return errors.New("CEL runtime error: unsupported attribute value")
	case !errors.As(err, &rejection):
		return err
	}
	switch rejection.Cause {
	case allocator.PoolFault:
		fault, state := rejection.Faults[0], "invalid"
		if unfinished(fault) {
			state = "being updated"
		}
		return fmt.Errorf("%s: asks for all devices, but resource pool %s is currently %s",
			whereIs(p, p.Alternatives[rejection.Alternative]), fault.Pool, state)
	case allocator.TooMany:
		return errors.New("exceeds the claim limit")
	case allocator.NoCommonValue:
		if err := violatedByAll(p, node, rejection); err != nil {
			return err
		}
	}
	for _, fault := range rejection.Faults {
		if !unfinished(fault) {
			return fmt.Errorf("invalid resource pools were encountered%w", internal.ErrFailedAllocationOnNode)
		}
	}
	return nil
}

// unfinished tells whether kube-scheduler takes the fault for a pool that is
// being updated: the number of slices is all that it looks at.
func unfinished(fault *inventory.Fault) bool {
	return fault.Kind == inventory.Incomplete || fault.Kind == inventory.Surplus || fault.Kind == inventory.Contradictory
}

func whereIs(p *problem.Problem, a *problem.Alternative) string {
	return fmt.Sprintf("claim %s, request %s", p.Claims[a.Claim].Object.Name, a.Name)
}

// violatedByAll names the first device that "all devices" cannot have together
// with the ones before it, which aborts the pod in kube-scheduler.
func violatedByAll(p *problem.Problem, node allocator.Node, rejection *allocator.Rejection) error {
	for _, a := range p.Alternatives {
		if !a.All {
			continue
		}
		var first *device.Value
		for _, pool := range node.View.Pools {
			for _, d := range pool.Devices {
				attribute, _ := d.Attribute(rejection.Attribute)
				value, _ := device.ValueOf(attribute)
				if first == nil {
					first = &value
				}
				if value != *first {
					return fmt.Errorf("%s: cannot add device %s because a claim constraint would not be satisfied", whereIs(p, a), d.ID)
				}
			}
		}
	}
	return nil
}
