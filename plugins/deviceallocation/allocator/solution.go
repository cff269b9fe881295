package allocator

import "github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"

// Solution says which devices of a node satisfy a Problem. It is immutable.
type Solution struct {
	// Claims has one entry per claim of the Problem. Its picks are in the order
	// of an allocation result: by request, then in the order of the pool.
	Claims [][]Pick
	// Ranks has the rank of the alternative taken for each request of each
	// claim in turn; 0 for exact requests.
	Ranks []int
	// Cost is the sum of the objective's costs, 0 without an objective.
	Cost int64
	// Left is the number of devices on the node that could still serve the
	// alternatives taken, once the picks are gone.
	Left int
	// Steps is the search effort. Exhausted says that the budget ended before
	// the solution was proved to be the best one.
	Steps     int
	Exhausted bool
}

// Pick is one device for one alternative of the Problem.
type Pick struct {
	// Alternative is an index into Problem.Alternatives.
	Alternative int
	Device      *device.Device
}
