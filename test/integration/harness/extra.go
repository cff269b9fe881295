package harness

// StartScheduler runs a further scheduler for the time of the test.
func (e *Env) StartScheduler(name string, options SchedulerOptions) *Scheduler {
	e.t.Helper()
	s, err := e.Cluster.NewScheduler(name, options)
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
