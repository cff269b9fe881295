package capacity_test

import (
	"testing"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/capacity"
)

func BenchmarkDemand(b *testing.B) {
	device := shareable(capacities{"memory": ranged("80Gi", "1Gi", "1Gi", "40Gi", "1Gi"), "share": ranged("1", "100m", "100m", "", "100m")})
	asked := requests(quantities{"memory": "9Gi", "share": "250m"})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := capacity.Demand(device, asked, true); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVectorOf(b *testing.B) {
	device := shareable(capacities{"memory": unlimited("80Gi"), "share": unlimited("1")})
	demand, table := amountsOf(quantities{"memory": "9Gi", "share": "250m"}), capacity.TableOf(device)
	b.ReportAllocs()
	for b.Loop() {
		table.VectorOf(demand)
	}
}

func BenchmarkSearchStep(b *testing.B) {
	device := shareable(capacities{"memory": unlimited("80Gi"), "share": unlimited("1")})
	table := capacity.TableOf(device)
	left, demand := table.Values(), table.VectorOf(amountsOf(quantities{"memory": "9Gi", "share": "250m"}))
	b.ReportAllocs()
	for b.Loop() {
		if left.Covers(demand) {
			left.Sub(demand)
			left.Add(demand)
		}
	}
}
