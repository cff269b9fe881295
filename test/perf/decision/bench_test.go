package decision

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// BenchmarkSteady measures decisions in a cluster of which an equal part is in
// use all the time: the decisions of a wave are taken back before the next one.
func BenchmarkSteady(b *testing.B) { compare(b, steadyCases()) }

// BenchmarkMixed measures decisions about pods of two kinds that take turns. In
// kube-scheduler's default profile no pod can be batched, because of the default
// constraints of PodTopologySpread; decisions are like these then.
func BenchmarkMixed(b *testing.B) { compare(b, mixedCases()) }

// BenchmarkFill measures decisions that stay, until 95% of the GPUs are in use;
// then all of them are taken back. It shows the whole way only if b.N is large
// enough: -benchtime=760x for 100 nodes.
func BenchmarkFill(b *testing.B) { compare(b, fillCases()) }

// BenchmarkCandidates measures what nodes without devices cost: the same 100
// nodes have GPUs among 500 and among 5,000 nodes.
func BenchmarkCandidates(b *testing.B) { compare(b, candidateCases()) }

// BenchmarkBlocked measures decisions while every fourth pod is one that no
// node can run. An operation is a decision about one of the other pods; the
// time of every fourth pod counts as theirs.
func BenchmarkBlocked(b *testing.B) { compare(b, blockedCases()) }

func compare(b *testing.B, cases []benchmarkCase) {
	for _, c := range cases {
		objects := c.cluster.objects()
		for _, plugin := range []string{Ours, Stock} {
			b.Run(c.name+"/"+plugin, func(b *testing.B) { measure(b, startFor(b, plugin, objects), objects) })
		}
	}
}

// measure makes b.N decisions about pods that can run. Only the decisions are
// timed.
func measure(b *testing.B, s *Scheduler, objects *objects) {
	b.StopTimer()
	b.ReportAllocs()
	ctx := context.Background()
	// The first decision compiles expressions and fills caches.
	decideAll(b, ctx, s, objects, 1)
	var cpu time.Duration
	for done := 0; done < b.N; {
		n := min(len(objects.pods), b.N-done)
		cpu += decideAll(b, ctx, s, objects, n)
		done += n
	}
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), cpuMetric)
	if seconds := b.Elapsed().Seconds(); seconds > 0 {
		b.ReportMetric(float64(b.N)/seconds, "decisions/s")
	}
}

// decideAll decides about the first n pods, with the blocked ones among them,
// and takes that back. The timer runs during the decisions, whose CPU time is
// returned.
func decideAll(b *testing.B, ctx context.Context, s *Scheduler, o *objects, n int) time.Duration {
	b.Helper()
	pods := 0
	for i := range n {
		s.add(ctx, o.pods[i])
		pods++
		if every := i / 3; i%3 == 2 && every < len(o.blocked) {
			s.add(ctx, o.blocked[every])
			pods++
		}
	}
	decisions := make([]*decision, pods)
	before := cpuTime(b)
	b.StartTimer()
	for i := range decisions {
		d, err := s.decide(ctx)
		if err != nil {
			b.Fatal(err)
		}
		decisions[i] = d
	}
	b.StopTimer()
	spent := cpuTime(b) - before
	placed := 0
	for _, d := range decisions {
		if d.assumed != nil {
			placed++
		}
		if err := s.undo(ctx, d); err != nil {
			b.Fatal(err)
		}
	}
	if placed != n {
		b.Fatalf("%d of %d pods got a node", placed, n)
	}
	return spent
}

// cpuTime is what the process has used up to now.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatalf("read CPU time: %v", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func startFor(t testing.TB, plugin string, objects *objects) *Scheduler {
	t.Helper()
	s, err := start(plugin, objects)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
