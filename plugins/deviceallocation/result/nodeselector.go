package result

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/allocator"
)

// nodeSelector says from which nodes all picks can be reached: from the named
// one if a device is local to a node or binds to one, else from those that
// satisfy the selectors of all devices. It is nil if the devices can be reached
// from everywhere.
func nodeSelector(picks []allocator.Pick, nodeName string) (*corev1.NodeSelector, error) {
	var term corev1.NodeSelectorTerm
	for _, pick := range picks {
		reach := pick.Device.Reach
		binds := pick.Device.Spec.BindsToNode
		if reach.NodeName != "" || binds != nil && *binds {
			return onlyNode(nodeName), nil
		}
		if reach.NodeSelector == nil || len(reach.NodeSelector.NodeSelectorTerms) == 0 {
			continue
		}
		if n := len(reach.NodeSelector.NodeSelectorTerms); n > 1 {
			// The API server allows one term only; a conjunction of several
			// could not be written down.
			return nil, fmt.Errorf("node selector of device %s has %d terms instead of one", pick.Device.ID, n)
		}
		one := reach.NodeSelector.NodeSelectorTerms[0]
		term.MatchFields = merge(term.MatchFields, one.MatchFields)
		term.MatchExpressions = merge(term.MatchExpressions, one.MatchExpressions)
	}
	if len(term.MatchFields) == 0 && len(term.MatchExpressions) == 0 {
		return nil, nil
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}, nil
}

func onlyNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{
			Key:      "metadata.name",
			Operator: corev1.NodeSelectorOpIn,
			Values:   []string{name},
		}},
	}}}
}

// merge adds the requirements that are not there yet.
func merge(to, from []corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	for i := range from {
		known := slices.ContainsFunc(to, func(r corev1.NodeSelectorRequirement) bool {
			return equality.Semantic.DeepEqual(r, from[i])
		})
		if !known {
			to = append(to, *from[i].DeepCopy())
		}
	}
	return to
}
