// Package device is the vocabulary of the core: what identifies a device,
// what it offers and from where it can be reached.
//
// It decides nothing beyond the meaning of a single published device: which
// attribute a fully qualified name refers to, whether two attribute values are
// equal, which taints forbid a new allocation, and for which feature a device is
// refused while its gate is off. It never does I/O and never looks at more than
// one device at a time.
//
// All other rooms of the core build on it. A *Device is immutable once it has
// been published by the inventory and may be shared between goroutines.
package device
