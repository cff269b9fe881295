package allocator

import "testing"

func TestClaimSet(t *testing.T) {
	// 63 and 64 are on both sides of the word that most sets fit into.
	members := []int{0, 3, 63, 64, 65, 200}
	var set claimSet
	if !set.empty() {
		t.Error("a new set is not empty")
	}
	for i, claim := range members {
		before := set.clone()
		set.add(claim)
		if set.equal(before) || before.has(claim) {
			t.Errorf("a copy follows the addition of %d", claim)
		}
		for j, other := range members {
			if set.has(other) != (j <= i) {
				t.Errorf("after adding %d: has(%d) is %t", claim, other, set.has(other))
			}
		}
	}
	for i, claim := range members {
		set.remove(claim)
		for j, other := range members {
			if set.has(other) != (j > i) {
				t.Errorf("after removing %d: has(%d) is %t", claim, other, set.has(other))
			}
		}
	}
	if !set.empty() || !set.equal(claimSet{}) {
		t.Errorf("%v is left", set)
	}
}
