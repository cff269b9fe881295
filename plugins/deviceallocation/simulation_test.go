package deviceallocation

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/google/go-cmp/cmp"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

const simulatedSteps = 60

// simulation is a cluster in which things happen at random, with the plugin in
// a scheduler that does what kube-scheduler does: its queue wakes a pod only
// after an event for which the plugin's hints ask for that.
type simulation struct {
	*api
	*testing.T
	seed      uint64
	random    *rand.Rand
	scheduler *harness
	hints     []fwk.ClusterEventWithHint
	gate      *gate
	pools     []*simulatedPool
	steps     []string
	created   int

	queue   map[string]*queued
	flights []*flight
	// released are attempts that have failed after Reserve, failing says how.
	released []*flight
	failing  []*fwk.Status
	// bound are pods for which the API server has confirmed the node.
	bound map[string]bool

	recording sync.Mutex
	recorded  []clusterEvent

	// foreign are the claims that another scheduler has allocated, existed the
	// devices that ever were.
	foreign map[types.UID]bool
	existed map[device.ID]bool
	charges map[drawKey]*charge
	// crowded clusters are about partitions and ports only.
	crowded bool

	// faultsUntil is the step before which the API server fails, dying means
	// that the scheduler does not survive the step.
	faultsUntil int
	dying       bool
	asked       map[string]int
}

// TestSimulation runs random sequences. SIMULATION_SEED runs a single one,
// SIMULATION_CASES another number of them.
func TestSimulation(t *testing.T) {
	first, cases := uint64(1), uint64(60)
	if text := os.Getenv("SIMULATION_CASES"); text != "" {
		cases = number(t, text)
	}
	if text := os.Getenv("SIMULATION_SEED"); text != "" {
		first = number(t, text)
		if os.Getenv("SIMULATION_CASES") == "" {
			cases = 1
		}
	}
	for seed := first; seed < first+cases; seed++ {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			steps, placements := simulate(t, seed)
			if seed%10 != 0 {
				return
			}
			again, same := simulate(t, seed)
			if diff := cmp.Diff(steps, again); diff != "" {
				t.Errorf("seed %d: other steps in the second run (-first +second):\n%s", seed, diff)
			}
			if diff := cmp.Diff(placements, same); diff != "" {
				t.Errorf("seed %d: other placements in the second run (-first +second):\n%s", seed, diff)
			}
		})
	}
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("environment: %v", err)
	}
	return n
}

func simulate(t *testing.T, seed uint64) (steps, placements []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, seed)
		for len(s.steps) < simulatedSteps {
			s.step()
		}
		s.rest()
		steps, placements = s.steps, s.placements()
	})
	return steps, placements
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	s := &simulation{
		T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)),
		queue: make(map[string]*queued), bound: make(map[string]bool), asked: make(map[string]int),
		foreign: make(map[types.UID]bool), existed: make(map[device.ID]bool),
		charges: make(map[drawKey]*charge),
	}
	nodes := 3 + s.random.IntN(3)
	if s.crowded = seed%2 == 1; s.crowded {
		nodes = 2
	}
	var objects []runtime.Object
	for _, name := range simulatedClasses {
		objects = append(objects, simulatedClass(name, 0))
	}
	for i := range nodes {
		objects = append(objects, builders.Node(fmt.Sprintf("node-%d", i), "zone", []string{"a", "b"}[s.random.IntN(2)]))
	}
	s.api = newAPI(objects)
	s.gate = newGate(s.api)
	s.pools = simulatedPools(nodes)
	s.start()
	for _, pool := range s.pools {
		s.publish(pool)
	}
	s.settle()
	return s
}

// start starts a scheduler, as the only one.
func (s *simulation) start() {
	s.scheduler = startPlugin(s.T, s.api, s.allNodes(), s.watch)
	hints, err := s.scheduler.plugin.EventsToRegister(s.scheduler.ctx)
	s.must(err)
	s.hints = hints
	s.forget()
	s.settle()
}

// crash ends the scheduler wherever it is, and starts the next one.
func (s *simulation) crash() string {
	s.scheduler.stop()
	s.queue, s.flights, s.recorded = make(map[string]*queued), nil, nil
	s.bound = make(map[string]bool)
	s.start()
	return "scheduler crashes"
}

// step does one thing at random.
func (s *simulation) step() {
	s.Helper()
	text := ""
	switch dice := s.random.IntN(100); {
	case dice < 16:
		text = s.createPod()
	case dice < 22:
		text = s.deletePod()
	case dice < 44:
		if ready := s.ready(); len(ready) > 0 {
			text = s.schedule(ready[s.random.IntN(len(ready))])
		}
	case dice < 64:
		if len(s.flights) > 0 {
			text = s.advance(s.flights[s.random.IntN(len(s.flights))])
		}
	case dice < 70:
		text = s.control()
	case dice < 76:
		if text = s.withhold(); text == "" {
			text = s.publish(s.anyPool())
		}
	case dice < 92:
		text = s.disturb(dice - 76)
	case dice < 98:
		text = s.delay(s.random.IntN(6))
	default:
		s.rest()
		text = "at rest"
	}
	if text == "" {
		return
	}
	s.done(text)
}

// done ends a step.
func (s *simulation) done(text string) {
	s.Helper()
	text = randomSuffix.ReplaceAllString(text, "$1")
	s.steps = append(s.steps, text)
	s.settle()
	s.checkClaims()
}

func (s *simulation) disturb(what int) string {
	switch what {
	case 0:
		return s.withdraw()
	case 1, 2, 3:
		return s.taint()
	case 4, 5:
		return s.rule()
	case 6:
		return s.class()
	case 7:
		return s.label()
	case 8, 9:
		return s.allocateElsewhere()
	case 10:
		return s.deleteClaim()
	case 11:
		return s.crash()
	case 12, 13:
		if len(s.flights) == 0 {
			return ""
		}
		s.dying = true
		text := s.advance(s.flights[s.random.IntN(len(s.flights))])
		s.dying = false
		return s.crash() + " in " + text
	default:
		s.faultsUntil = len(s.steps) + 2 + s.random.IntN(8)
		return fmt.Sprintf("API server fails until step %d", s.faultsUntil)
	}
}

var delayed = []string{"resourceclaims", "resourceslices", "devicetaintrules", "deviceclasses", "pods", "nodes"}

// delay holds the events of a resource back, or lets all of them through.
func (s *simulation) delay(what int) string {
	if s.random.IntN(2) == 0 {
		s.gate.hold(delayed[what])
		return "hold " + delayed[what]
	}
	s.release()
	return "release all events"
}

// release lets all events through, one after the other.
func (s *simulation) release() {
	for _, at := range s.random.Perm(len(delayed)) {
		for s.gate.pass(delayed[at]) {
			s.settle()
		}
	}
	s.settle()
}

// rest lets everything come to its end, and checks what must hold then.
func (s *simulation) rest() {
	s.Helper()
	s.faultsUntil = 0
	s.release()
	for round := 0; ; round++ {
		s.control()
		s.settle()
		ready := s.ready()
		if len(ready) == 0 && len(s.flights) == 0 {
			break
		}
		if round == 40 {
			s.failf("no rest: still trying %s", ready[0].pod.Name)
		}
		for _, q := range ready {
			if s.queue[q.pod.Name] == q && !q.waiting && !q.inFlight {
				s.done("  " + s.schedule(q))
			}
		}
		for len(s.flights) > 0 {
			s.done("  " + s.advance(s.flights[0]))
		}
	}
	s.checkRest()
}
