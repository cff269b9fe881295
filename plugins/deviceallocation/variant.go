package deviceallocation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/verdict"
)

// variant is what has to be allocated on some nodes.
type variant struct {
	// claims are those of the problem.
	claims  []*resourceapi.ResourceClaim
	problem *problem.Problem
	err     error
	// verdicts has what was found on nodes for pods that look like this one; nil
	// if there is an error.
	verdicts *verdict.Table
	// mappings say which container uses which request of the last claim, if
	// that is for extended resources.
	mappings []corev1.ContainerExtendedResourceRequest
}

// variants has the variants of an attempt: which one a node needs depends on
// the extended resources that it provides through devices. Each is made when the
// first node needs it. Nearly always a node provides all of them in that way or
// none, so that the parallel Filter calls share no lock.
type variants struct {
	plain, whole func() *variant

	mutex sync.Mutex
	mixed map[string]*variant
}

// newVariants prepares the variants of an attempt whose claims are known.
func (pl *Plugin) newVariants(s *state) {
	s.variants.plain = sync.OnceValue(func() *variant { return pl.newVariant(s, nil) })
	if s.extended != nil {
		s.variants.whole = sync.OnceValue(func() *variant { return pl.newVariant(s, s.extended.names) })
	}
}

// variant returns what has to be allocated on nodes that provide the given
// extended resources through devices: some of the pod's, in their order.
func (pl *Plugin) variant(s *state, extended []corev1.ResourceName) *variant {
	switch {
	case len(extended) == 0:
		return s.variants.plain()
	case len(extended) == len(s.extended.names):
		return s.variants.whole()
	}
	key := variantKey(extended)
	s.variants.mutex.Lock()
	defer s.variants.mutex.Unlock()
	if v, ok := s.variants.mixed[key]; ok {
		return v
	}
	v := pl.newVariant(s, extended)
	if s.variants.mixed == nil {
		s.variants.mixed = make(map[string]*variant)
	}
	s.variants.mixed[key] = v
	return v
}

func (pl *Plugin) newVariant(s *state, extended []corev1.ResourceName) *variant {
	v := &variant{claims: slices.Clone(s.pending)}
	if len(extended) > 0 {
		claim, mappings := s.extended.claim(extended)
		v.claims, v.mappings = append(v.claims, claim), mappings
	}
	v.problem, v.err = pl.problem(v.claims)
	if v.err == nil {
		v.verdicts = pl.verdicts.Table(verdict.Key{Signature: v.problem.Signature, Profile: pl.profile, Avoided: s.avoided})
	}
	return v
}

func variantKey(names []corev1.ResourceName) string {
	var key strings.Builder
	for _, name := range names {
		fmt.Fprintf(&key, "%s ", name)
	}
	return key.String()
}

// checked returns what this attempt has found out about a node, with the
// variant that it is about; nil if it has not looked at the node or that is not
// known any more.
func (s *state) checked(node string) (*variant, *verdict.Verdict) {
	return s.lookUp(func(t *verdict.Table) *verdict.Verdict { return t.Checked(s.attempt, node) })
}

// withID returns the verdict with a number about a node, nil if it was replaced.
func (s *state) withID(id int64, node string) *verdict.Verdict {
	_, found := s.lookUp(func(t *verdict.Table) *verdict.Verdict { return t.WithID(id, node) })
	return found
}

// lookUp asks the tables of all variants.
func (s *state) lookUp(in func(*verdict.Table) *verdict.Verdict) (*variant, *verdict.Verdict) {
	if s.extended == nil { // nearly always, and then for each node
		v := s.variants.plain()
		if v.err != nil {
			return nil, nil
		}
		return v, in(v.verdicts)
	}
	for _, v := range s.made() {
		if v.err == nil {
			if found := in(v.verdicts); found != nil {
				return v, found
			}
		}
	}
	return nil, nil
}

// made returns the variants that nodes have needed so far, and those that any
// node may need which provides all extended resources in the same way.
func (s *state) made() []*variant {
	var made []*variant
	if len(s.pending) > 0 {
		made = append(made, s.variants.plain())
	}
	if s.extended == nil {
		return made
	}
	s.variants.mutex.Lock()
	defer s.variants.mutex.Unlock()
	return slices.AppendSeq(append(made, s.variants.whole()), maps.Values(s.variants.mixed))
}
