package device

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// UntoleratedTaint returns the first taint that forbids a new allocation for a
// request with the given tolerations, or nil. Only the effects NoSchedule and
// NoExecute forbid; None and effects that this version does not know are
// ignored (KEP-5055).
func UntoleratedTaint(taints []resourceapi.DeviceTaint, tolerations []resourceapi.DeviceToleration) *resourceapi.DeviceTaint {
	for i := range taints {
		taint := &taints[i]
		if taint.Effect != resourceapi.DeviceTaintEffectNoSchedule && taint.Effect != resourceapi.DeviceTaintEffectNoExecute {
			continue
		}
		if !tolerated(*taint, tolerations) {
			return taint
		}
	}
	return nil
}

func tolerated(taint resourceapi.DeviceTaint, tolerations []resourceapi.DeviceToleration) bool {
	for _, toleration := range tolerations {
		if resourceclaim.ToleratesTaint(toleration, taint) {
			return true
		}
	}
	return false
}
