package harness

import "context"

// StartScheduler runs a further scheduler for the time of the test. It is not
// waited for: with a lease it works only when nobody else has it.
func (e *Env) StartScheduler(name string, options SchedulerOptions) *Scheduler {
	e.t.Helper()
	s, err := e.Cluster.NewScheduler(e.In(name), options)
	e.check(err, "prepare scheduler %s", name)
	e.Watch(s)
	e.t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			e.t.Error(err)
		}
	})
	e.check(s.Launch(), "start scheduler %s", name)
	return s
}

// ReplaceScheduler stops the scheduler that all tests share and runs another
// one in its place, which holds the lease when this returns. At the end of the
// test it is the other way round.
func (e *Env) ReplaceScheduler(name string, options SchedulerOptions) *Scheduler {
	e.t.Helper()
	shared := e.Cluster.Scheduler
	e.check(shared.Stop(), "stop the shared scheduler")
	e.t.Cleanup(func() {
		// The test's own context is over.
		if err := shared.Start(context.Background()); err != nil {
			e.t.Errorf("start the shared scheduler again: %v", err)
		}
	})
	s := e.StartScheduler(name, options)
	e.check(s.AwaitLog(e.t.Context(), becameLeader), "wait for scheduler %s", name)
	return s
}
