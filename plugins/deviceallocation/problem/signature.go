package problem

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// Signature identifies a Problem by what it asks for.
type Signature [sha256.Size]byte

// sign hashes everything that solutions and their explanations depend on. The
// names of claims and the configuration for drivers do not matter; the names of
// requests do, because explanations contain them.
func sign(p *Problem) Signature {
	w := signer{hash: sha256.New()}
	w.number(len(p.Claims))
	for i := range p.Claims {
		w.claim(&p.Claims[i])
	}
	return Signature(w.hash.Sum(nil))
}

// signer writes every value with its length, so that different problems never
// give the same bytes.
type signer struct{ hash hash.Hash }

func (w signer) number(n int) {
	var buffer [8]byte
	binary.LittleEndian.PutUint64(buffer[:], uint64(n))
	w.hash.Write(buffer[:])
}

func (w signer) text(s string) {
	w.number(len(s))
	w.hash.Write([]byte(s))
}

func (w signer) flag(b bool) {
	if b {
		w.number(1)
	} else {
		w.number(0)
	}
}

func (w signer) claim(claim *Claim) {
	w.number(len(claim.Requests))
	for i := range claim.Requests {
		request := &claim.Requests[i]
		w.text(request.Name)
		w.flag(request.Prioritized)
		w.number(len(request.Alternatives))
		for _, alternative := range request.Alternatives {
			w.alternative(alternative)
		}
	}
	w.number(len(claim.Constraints))
	for i := range claim.Constraints {
		constraint := &claim.Constraints[i]
		w.number(int(constraint.Kind))
		w.text(string(constraint.Attribute))
		for _, covered := range constraint.covers {
			w.flag(covered)
		}
	}
}

func (w signer) alternative(a *Alternative) {
	w.text(a.Name)
	w.text(a.Class.Name)
	w.flag(a.All)
	w.number(a.Count)
	w.flag(a.Admin)
	w.number(len(a.Selectors))
	for _, s := range a.Selectors {
		w.text(s.Class)
		w.text(s.Expression.Text())
	}
	w.number(len(a.Tolerations))
	for i := range a.Tolerations {
		w.toleration(&a.Tolerations[i])
	}
	amounts := requested(a.Capacity)
	w.number(len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		w.text(string(name))
		w.text(amount.String())
	}
	w.number(len(a.Derived))
	for i := range a.Derived {
		w.text(string(a.Derived[i].Name))
		w.text(a.Derived[i].Derivation.Text())
	}
}

func (w signer) toleration(t *resourceapi.DeviceToleration) {
	w.text(t.Key)
	w.text(string(t.Operator))
	w.text(t.Value)
	w.text(string(t.Effect))
}
