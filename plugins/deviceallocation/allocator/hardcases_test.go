package allocator_test

import (
	"fmt"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// hardCase is a search that costs an exhaustive one up to millions of steps.
type hardCase struct {
	cluster  *cluster
	feasible bool
	want     int // steps without an objective
	wantBest int // steps with best fit
}

func hardCases() map[string]hardCase {
	numa := func(perNode int) func(int, *builders.DeviceBuilder) {
		return func(i int, d *builders.DeviceBuilder) { d.Attribute(numaAttribute, i/perNode) }
	}
	return map[string]hardCase{
		"24 GPUs, 8 wanted, and a NIC where there is none": {
			cluster: newCluster(slicesOf(gpus(24, nil)), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(8), builders.Request("nic", "nic"))),
		},
		"20 GPUs, 21 wanted": {
			cluster: newCluster(slicesOf(gpus(20, nil)), builders.Claim("claim", builders.Request("gpu", "gpu").Count(21))),
		},
		"10 GPUs, 7 requests for one each, and a NIC where there is none": {
			cluster: newCluster(slicesOf(gpus(10, nil)),
				builders.Claim("claim", append(requests(7, "gpu"), builders.Request("nic", "nic"))...)),
		},
		"16 GPUs on 4 NUMA nodes, 4 aligned, and 2 NICs where there is one": {
			cluster: newCluster(slicesOf(gpus(16, numa(4)), nics(1, nil)), builders.Claim("claim",
				builders.Request("gpu", "gpu").Count(4), builders.Request("nic", "nic").Count(2)).MatchAttribute(numaAttribute, "gpu")),
		},
		"40 CPUs on 2 NUMA nodes, 21 aligned": {
			cluster: newCluster(slicesOf(gpus(40, numa(20))),
				builders.Claim("claim", builders.Request("cpu", "gpu").Count(21)).MatchAttribute(numaAttribute)),
		},
		"40 CPUs on 2 NUMA nodes, 20 aligned": {
			cluster: newCluster(slicesOf(gpus(40, numa(20))),
				builders.Claim("claim", builders.Request("cpu", "gpu").Count(20)).MatchAttribute(numaAttribute)),
			feasible: true,
			want:     20, wantBest: 21,
		},
		"8 GPUs and 8 NICs in pairs, aligned by 8 roots": {
			cluster: newCluster(slicesOf(gpus(8, numa(1)), nics(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, 7-i)
			})), pairs(8)),
			feasible: true,
			want:     16, wantBest: 44,
		},
		"9 GPUs and 9 NICs in pairs, aligned by roots, one NIC apart": {
			cluster: newCluster(slicesOf(gpus(9, numa(1)), nics(9, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i+1)
			})), pairs(9)),
		},
		"16 requests on 8 small and 8 large GPUs": {
			cluster:  newCluster(slicesOf(twoModels(8)), builders.Claim("claim", requests(16, "gpu")...)),
			feasible: true,
			want:     16, wantBest: 24,
		},
		"17 requests on 8 small and 8 large GPUs": {
			cluster: newCluster(slicesOf(twoModels(8)), builders.Claim("claim", requests(17, "gpu")...)),
		},
		"16 claims on 8 small and 8 large GPUs": {
			cluster:  newCluster(slicesOf(twoModels(8)), claimsOfOne(16)...),
			feasible: true,
			want:     16, wantBest: 24,
		},
		"12 requests, every other for large ones, on 8 small and 8 large GPUs": {
			cluster: newCluster(slicesOf(twoModels(8)), builders.Claim("claim", func() []builders.AnyRequest {
				result := requests(12, "gpu")
				for i := 1; i < len(result); i += 2 {
					result[i].(*builders.RequestBuilder).Select(conditions[3].expression)
				}
				return result
			}()...)),
			feasible: true,
			want:     12, wantBest: 18,
		},
		"16 lists, large before small, on 8 small and 8 large GPUs": {
			cluster: newCluster(slicesOf(twoModels(8)), builders.Claim("claim", func() []builders.AnyRequest {
				var result []builders.AnyRequest
				for i := range 16 {
					result = append(result, builders.FirstAvailable(fmt.Sprintf("gpu-%d", i),
						builders.Request("large", "gpu").Select(conditions[3].expression), builders.Request("any", "gpu")))
				}
				return result
			}()...)),
			feasible: true,
			want:     16, wantBest: 16,
		},
		"8 pairs where the roots have 6": {
			cluster: newCluster(slicesOf(gpus(8, numa(2)), unevenNICs()), pairs(8)),
			want:    34, wantBest: 34,
		},
		"6 pairs where the roots have 6": {
			cluster:  newCluster(slicesOf(gpus(8, numa(2)), unevenNICs()), pairs(6)),
			feasible: true,
			want:     15, wantBest: 25,
		},
		"8 pairs, each a claim of its own, where the roots have 6": {
			cluster: newCluster(slicesOf(gpus(8, numa(2)), unevenNICs()), pairClaims(8)...),
			want:    34, wantBest: 34,
		},
		"4 claims of an aligned pair on 2 NUMA nodes and 2 models": {
			cluster: newCluster(slicesOf(gpus(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i/4).Capacity("memory", []string{"16Gi", "80Gi"}[i%2])
			}), nics(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i/4).Capacity("bandwidth", []string{"100G", "400G"}[i/2%2])
			})), pairClaims(4)...),
			feasible: true,
			want:     8, wantBest: 22,
		},
		"8 claims of an aligned pair on 2 NUMA nodes and 2 models": {
			cluster: newCluster(slicesOf(gpus(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i/4).Capacity("memory", []string{"16Gi", "80Gi"}[i%2])
			}), nics(8, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i/4).Capacity("bandwidth", []string{"100G", "400G"}[i/2%2])
			})), pairClaims(8)...),
			feasible: true,
			want:     16, wantBest: 32,
		},
		"4 aligned of 16 GPUs, every one different": {
			cluster: newCluster(slicesOf(gpus(16, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(numaAttribute, i%4).Capacity("memory", fmt.Sprintf("%dGi", 10+(i*7)%16))
			})), builders.Claim("claim", builders.Request("gpu", "gpu").Count(4)).MatchAttribute(numaAttribute)),
			feasible: true,
			want:     4, wantBest: 22,
		},
		"8 of 16 GPUs with different serial numbers": {
			cluster: newCluster(slicesOf(gpus(16, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(serialNumber, fmt.Sprint(i/2)).Capacity("memory", fmt.Sprintf("%dGi", 10+(i*7)%16))
			})), builders.Claim("claim", builders.Request("gpu", "gpu").Count(8)).DistinctAttribute(serialNumber)),
			feasible: true,
			want:     8, wantBest: 504,
		},
		"9 of 16 GPUs with 8 different serial numbers": {
			cluster: newCluster(slicesOf(gpus(16, func(i int, d *builders.DeviceBuilder) {
				d.Attribute(serialNumber, fmt.Sprint(i/2))
			})), builders.Claim("claim", builders.Request("gpu", "gpu").Count(9)).DistinctAttribute(serialNumber)),
		},
	}
}
