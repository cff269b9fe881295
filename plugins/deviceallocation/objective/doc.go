// Package objective decides which of several possible placements is better.
//
// On a node it prices devices for the allocator: the least valuable device that
// satisfies a request is the best fit for it. Across nodes it turns what the
// allocator found on each of them into scores: prioritized lists first, because
// they are what the user asked for, then best fit and packing (or spreading).
//
// It searches nothing and knows nothing about claims in use. The plugin hands
// its prices to the allocator in Filter and its scores to the framework in
// Score.
package objective
