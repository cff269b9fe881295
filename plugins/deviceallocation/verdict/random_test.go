package verdict

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/ledger"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/problem"
	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/result"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// number reads a number from the environment.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// TestVerdictsAreNeverOutOfDate goes through random sequences of events. After
// each of them every verdict, remembered or not, must be the one that a search
// without memory finds.
//
// PROPERTY_SEED plays one sequence again, PROPERTY_CASES sets their number.
func TestVerdictsAreNeverOutOfDate(t *testing.T) {
	first, cases := number(t, "PROPERTY_SEED", 1), number(t, "PROPERTY_CASES", 40)
	if os.Getenv("PROPERTY_SEED") != "" {
		cases = number(t, "PROPERTY_CASES", 1)
	}
	var known, searched int
	for seed := first; seed < first+cases; seed++ {
		s := newSequence(t, seed)
		for step := range 60 {
			event := s.event()
			k, n := s.compare(fmt.Sprintf("seed %d, step %d: %s", seed, step, event))
			known, searched = known+k, searched+n
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d verdicts were known, %d were searched for", known, searched)
	if known < searched || searched < known/50 {
		t.Errorf("%d verdicts known and %d searched for: the sequences do not test much", known, searched)
	}
}

// sequence makes up events.
type sequence struct {
	*testing.T
	*world
	*rand.Rand
	nodes    []*corev1.Node
	problems []*problem.Problem
	tables   []*Table
	slices   map[string]*resourceapi.ResourceSlice
	claims   map[string]*resourceapi.ResourceClaim
	reserved map[types.UID]string
	rules    []*resourceapi.DeviceTaintRule
}

func newSequence(t *testing.T, seed int) *sequence {
	s := &sequence{
		T: t, world: newWorld(), Rand: rand.New(rand.NewPCG(uint64(seed), 1)),
		nodes:    []*corev1.Node{builders.Node("a", "rack", "1"), builders.Node("b", "rack", "2"), builders.Node("c")},
		slices:   make(map[string]*resourceapi.ResourceSlice),
		claims:   make(map[string]*resourceapi.ResourceClaim),
		reserved: make(map[types.UID]string),
	}
	large := `device.capacity["gpu.example.com"].memory.compareTo(quantity("60Gi")) >= 0`
	s.problems = []*problem.Problem{
		s.problem(t, builders.Claim("one", builders.Request("gpu", class))),
		s.problem(t, builders.Claim("two", builders.Request("gpu", class).Count(2))),
		s.problem(t, builders.Claim("large", builders.Request("gpu", class).Select(large))),
		s.problem(t, builders.Claim("all", builders.Request("gpu", class).All())),
		s.problem(t, builders.Claim("match", builders.Request("x", class), builders.Request("y", class)).MatchAttribute("gpu.example.com/model")),
		s.problem(t, builders.Claim("share", builders.Request("gpu", class).Capacity("memory", "20Gi"))),
		s.problem(t, builders.Claim("tolerant", builders.Request("gpu", class).Count(2).Tolerate("odd"))),
		s.problem(t, builders.Claim("first", builders.Request("x", class)), builders.Claim("second", builders.Request("x", class).Count(3))),
	}
	for range s.problems {
		s.tables = append(s.tables, &Table{})
	}
	for range 4 {
		s.changeSlice()
	}
	return s
}

// compare asks for every verdict and returns how many were known and how many had
// to be searched for.
func (s *sequence) compare(after string) (known, searched int) {
	s.Helper()
	for _, node := range s.nodes {
		offer := s.offer(node)
		for i, p := range s.problems {
			got, remembered := s.ask(s.T, s.tables[i], p, offer)
			if remembered {
				known++
			} else {
				searched++
			}
			solution, rejection := fresh(s.T, p, offer)
			if !reflect.DeepEqual(got.Solution, solution) || !reflect.DeepEqual(got.Rejection, rejection) {
				s.Errorf("%s: node %s, problem %d: verdict is out of date:\n got %+v, %+v\nwant %+v, %+v",
					after, node.Name, i, got.Solution, got.Rejection, solution, rejection)
			}
		}
	}
	return known, searched
}

// event makes something happen and says what.
func (s *sequence) event() string {
	switch s.IntN(9) {
	case 0, 1:
		return s.changeSlice()
	case 2:
		return s.deleteSlice()
	case 3:
		return s.changeRule()
	case 4, 5:
		return s.changeClaim()
	case 6:
		return s.reserve()
	case 7:
		return s.unreserve()
	default:
		node := s.IntN(len(s.nodes))
		s.nodes[node] = builders.Node(s.nodes[node].Name, "rack", strconv.Itoa(s.IntN(3)))
		return "node " + s.nodes[node].Name + " gets other labels"
	}
}

func (s *sequence) changeSlice() string {
	pool := []string{"a", "b", "rack", "everywhere"}[s.IntN(4)]
	slice := builders.Slice(driver, pool).SliceCount(int64(1 + s.IntN(6)/5))
	switch pool {
	case "rack":
		slice.OnNodesWith("rack", "1")
	case "everywhere":
		slice.OnAllNodes()
	default:
		slice.OnNode(pool)
	}
	for i := range s.IntN(5) {
		d := builders.Device(fmt.Sprintf("gpu-%d", i)).
			Attribute("model", []string{"x", "y"}[s.IntN(2)]).
			Capacity("memory", []string{"40Gi", "80Gi"}[s.IntN(2)])
		if s.IntN(4) == 0 {
			d.Shared()
		}
		if s.IntN(6) == 0 {
			d.Taint("odd", resourceapi.DeviceTaintEffectNoSchedule)
		}
		slice.Devices(d)
	}
	obj := slice.Obj()
	if s.slices[pool] != nil {
		obj.Spec.Pool.Generation = s.slices[pool].Spec.Pool.Generation + int64(s.IntN(2))
	}
	s.slices[pool] = obj
	s.publish(obj)
	return "slice of pool " + pool
}

func (s *sequence) deleteSlice() string {
	names := slices.Sorted(maps.Keys(s.slices))
	if len(names) == 0 {
		return "nothing"
	}
	name := names[s.IntN(len(names))]
	s.withdraw(s.slices[name])
	delete(s.slices, name)
	return "slice of pool " + name + " deleted"
}

func (s *sequence) changeRule() string {
	if len(s.rules) > 0 && s.IntN(2) == 0 {
		s.inventory.DeleteTaintRule(s.rules[0])
		s.rules = s.rules[1:]
		return "taint rule deleted"
	}
	name := fmt.Sprintf("rule-%d", s.version)
	rule := &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: s.next()},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(driver), Device: ptr.To(fmt.Sprintf("gpu-%d", s.IntN(4)))},
			Taint:          resourceapi.DeviceTaint{Key: []string{"odd", "broken"}[s.IntN(2)], Effect: resourceapi.DeviceTaintEffectNoSchedule},
		},
	}
	s.rules = append(s.rules, rule)
	s.inventory.SetTaintRule(rule)
	return "taint rule added"
}

// changeClaim shows a claim of somebody else with another allocation, without
// one, or as deleted.
func (s *sequence) changeClaim() string {
	name := fmt.Sprintf("foreign-%d", s.IntN(4))
	if known := s.claims[name]; known != nil && s.IntN(4) == 0 {
		s.ledger.Forget(known)
		delete(s.claims, name)
		return "claim " + name + " deleted"
	}
	claim := builders.Claim(name, builders.Request("gpu", class)).Obj()
	if s.IntN(4) > 0 {
		pool := []string{"a", "b", "rack", "everywhere"}[s.IntN(4)]
		claim = builders.Claim(name, builders.Request("gpu", class)).Holding(driver, pool, fmt.Sprintf("gpu-%d", s.IntN(4))).Obj()
	}
	if s.claims[name] == nil {
		claim.UID = types.UID(fmt.Sprintf("%s-%d", name, s.version))
	} else {
		claim.UID = s.claims[name].UID
	}
	s.claims[name] = claim
	s.observe(claim)
	return "claim " + name
}

// reserve takes what a verdict offers, as an attempt does.
func (s *sequence) reserve() string {
	node := s.nodes[s.IntN(len(s.nodes))]
	i := s.IntN(len(s.problems) - 1) // those with one claim
	got, _ := s.ask(s.T, s.tables[i], s.problems[i], s.offer(node))
	if got.Solution == nil {
		return "nothing to reserve"
	}
	share := 0
	allocations, err := result.Build(s.problems[i], got.Solution, node.Name, func() types.UID {
		share++
		return types.UID(fmt.Sprintf("00000000-0000-0000-%04d-%012d", share, s.version))
	})
	if err != nil {
		return "too much to reserve"
	}
	name := fmt.Sprintf("own-%s", s.next())
	devices := s.inventory.Snapshot()
	reservation := ledger.Reservation{Claim: types.UID(name), Name: types.NamespacedName{Namespace: "default", Name: name}, Allocation: &allocations[0], Chosen: devices}
	if err := s.ledger.Reserve(devices, []ledger.Reservation{reservation}); err != nil {
		s.Errorf("reserve what a verdict offers: %v", err)
	}
	s.reserved[reservation.Claim] = name
	return "reservation " + name
}

func (s *sequence) unreserve() string {
	claims := slices.Sorted(maps.Keys(s.reserved))
	if len(claims) == 0 {
		return "nothing"
	}
	s.ledger.Unreserve(claims[0])
	delete(s.reserved, claims[0])
	return "reservation taken back"
}
