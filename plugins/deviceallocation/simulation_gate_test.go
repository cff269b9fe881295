package deviceallocation

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// gate stands between the API server and the informers. It holds the events of
// single resources back, for as long as it is told to.
type gate struct {
	mutex   sync.Mutex
	changed *sync.Cond
	held    map[string]bool
	// passes lets single events of a held resource through.
	passes map[string]int
	open   []*gatedWatch
}

type gatedWatch struct {
	gate     *gate
	resource string
	source   watch.Interface
	queue    []watch.Event
	out      chan watch.Event
	stopped  chan struct{}
	stop     sync.Once
	ended    bool
}

func newGate(server *api) *gate {
	g := &gate{held: make(map[string]bool), passes: make(map[string]int)}
	g.changed = sync.NewCond(&g.mutex)
	server.client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		var options metav1.ListOptions
		if typed, ok := action.(clienttesting.WatchActionImpl); ok {
			options = typed.ListOptions
		}
		source, err := server.client.Tracker().Watch(action.GetResource(), action.GetNamespace(), options)
		if err != nil {
			return true, nil, err
		}
		return true, g.add(action.GetResource().Resource, source), nil
	})
	return g
}

func (g *gate) add(resource string, source watch.Interface) *gatedWatch {
	w := &gatedWatch{gate: g, resource: resource, source: source, out: make(chan watch.Event), stopped: make(chan struct{})}
	g.mutex.Lock()
	g.open = append(g.open, w)
	g.mutex.Unlock()
	go w.receive()
	go w.deliver()
	return w
}

func (w *gatedWatch) ResultChan() <-chan watch.Event { return w.out }

func (w *gatedWatch) Stop() {
	w.stop.Do(func() {
		close(w.stopped)
		w.source.Stop()
		w.gate.mutex.Lock()
		defer w.gate.mutex.Unlock()
		w.ended = true
		w.gate.changed.Broadcast()
	})
}

func (w *gatedWatch) receive() {
	for {
		select {
		case event, ok := <-w.source.ResultChan():
			if !ok {
				return
			}
			w.gate.mutex.Lock()
			w.queue = append(w.queue, event)
			w.gate.changed.Broadcast()
			w.gate.mutex.Unlock()
		case <-w.stopped:
			return
		}
	}
}

func (w *gatedWatch) deliver() {
	defer close(w.out)
	for {
		event, ok := w.next()
		if !ok {
			return
		}
		select {
		case w.out <- event:
		case <-w.stopped:
			return
		}
	}
}

func (w *gatedWatch) next() (watch.Event, bool) {
	g := w.gate
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for !w.ended && (len(w.queue) == 0 || g.held[w.resource] && g.passes[w.resource] == 0) {
		g.changed.Wait()
	}
	if w.ended {
		return watch.Event{}, false
	}
	if g.held[w.resource] {
		g.passes[w.resource]--
	}
	event := w.queue[0]
	w.queue = w.queue[1:]
	return event, true
}

func (g *gate) hold(resource string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.held[resource] = true
}

// pass lets the next event of a held resource through. It reports whether there
// is one; without one the resource is held no longer.
func (g *gate) pass(resource string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for _, w := range g.open {
		if w.resource == resource && !w.ended && len(w.queue) > 0 {
			g.passes[resource]++
			g.changed.Broadcast()
			return true
		}
	}
	delete(g.held, resource)
	delete(g.passes, resource)
	return false
}
