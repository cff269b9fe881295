package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestRestless(t *testing.T) {
	refused := Pod{Name: "late", Condition: "no room"}
	leaving := running("old")
	leaving.Leaving = true
	tests := map[string]struct {
		pods []Pod
		want string
	}{
		"settled":         {[]Pod{running("a"), refused}, ""},
		"one is missing":  {[]Pod{running("a")}, "there are 1 of 2 pods"},
		"one is leaving":  {[]Pod{running("a"), leaving}, "pod old is being deleted"},
		"one is starting": {[]Pod{running("a"), {Name: "new", Node: "n1"}}, "pod new is bound, but does not run"},
		"one is new":      {[]Pod{running("a"), {Name: "new"}}, "the scheduler has said nothing about pod new"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := restless(tc.pods, 2); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A pod between two queues is in none of them: the scheduler is trying it.
func TestBusy(t *testing.T) {
	pods := []Pod{running("a"), {Name: "late"}, {Name: "later"}}
	tests := map[string]struct {
		queues map[string]int
		idle   bool
	}{
		"all refused":      {map[string]int{"unschedulable": 2}, true},
		"one being tried":  {map[string]int{"unschedulable": 1}, false},
		"one backs off":    {map[string]int{"unschedulable": 1, "backoff": 1}, false},
		"one gated":        {map[string]int{"unschedulable": 1, "gated": 1}, false},
		"one not seen yet": {map[string]int{"unschedulable": 2, "active": 1}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := busy(tc.queues, pods); (got == "") != tc.idle {
				t.Errorf("got %q, want idle %t", got, tc.idle)
			}
		})
	}
}

func TestBusiest(t *testing.T) {
	pods := []Pod{
		{Name: "a", UID: "1", Node: "n2"}, {Name: "b", UID: "2", Node: "n1"},
		{Name: "c", UID: "3", Node: "n1"}, {Name: "d", UID: "4"}, {Name: "e", UID: "5"}, {Name: "f", UID: "6"},
	}
	node, there := busiest(pods)
	if diff := cmp.Diff([]types.UID{"2", "3"}, there); node != "n1" || diff != "" {
		t.Errorf("got node %s, pods (-want +got):\n%s", node, diff)
	}
}
