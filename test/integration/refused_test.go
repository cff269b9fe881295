package integration

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/test/builders"
	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// With the gate of a feature off, what needs it is not handed out, or waits, and
// the feature is named. Ordinary devices beside it are.
func TestFeatureGatesAreOff(t *testing.T) {
	e := env(t)
	e.ReplaceScheduler("off", harness.SchedulerOptions{FeatureGates: map[string]bool{
		"DRAConsumableCapacity": false, "DRAFractionalCapacityRange": false, "DRAPartitionableDevices": false,
	}})
	e.Nodes("a")
	counters := builders.Slice(e.Driver, "a").Named(e.In("counters")).SliceCount(2).OnNode(e.In("a")).
		CounterSet("set", map[string]string{"memory": "4Gi"})
	partition := pool(e, "a", builders.Device("part").Consumes("set", map[string]string{"memory": "1Gi"})).SliceCount(2)
	share := builders.Request("r", e.In("gpu")).Capacity("memory", "1Gi")
	e.Create(class(e, "gpu").Obj(), counters.Obj(), partition.Obj(),
		builders.Claim("partition", builders.Request("r", e.In("gpu"))).Obj(), builders.Pod("partition").Claim("partition").Obj(),
		builders.Claim("share", share).Obj(), builders.Pod("share").Claim("share").Obj())
	e.Waits("partition", unfit(1, `1 request "r": matching devices need partitionable devices, for which the feature gate of this scheduler is off`))
	e.Waits("share", unfit(1, `claim share, request "r": needs consumable capacity, for which the feature gate of this scheduler is off`))
	e.Create(builders.Slice(e.Driver, "other").OnNode(e.In("a")).Devices(builders.Device("whole")).Obj())
	e.Runs("partition", "a")
	e.Took("partition", "r=other/whole")
}

// A class that is missing, or whose selector fails everywhere, harms only the
// pods that ask for it.
func TestBadClassesHarmTheirPodsOnly(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), class(e, "wrong").Select(own(e, "attributes")+`.nonsense > 3`).Obj(), gpus(e, "a", 3).Obj())
	for _, name := range []string{"missing", "wrong", "gpu"} {
		e.Create(builders.Claim(name, builders.Request("r", e.In(name))).Obj(), builders.Pod(name).Claim(name).Obj())
	}
	e.Runs("gpu", "a")
	e.Waits("missing", unfit(1, `claim missing, request "r": device class `+e.In("missing")+" does not exist"))
	e.Waits("wrong", "0/1 nodes are available: "+`1 request "r": no device matches selector 2 of class `+e.In("wrong")+
		` (no such key: nonsense). request "r": a selector fails for device `+e.Driver+`/a/gpu-0: no such key: nonsense `+
		`(guard optional attributes with has() or .?), `+noPreemption(1))
	e.Create(class(e, "missing").Obj())
	e.Runs("missing", "a")
	e.Took("missing", "r=a/gpu-1")
}
