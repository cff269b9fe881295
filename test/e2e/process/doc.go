// Package process runs the programs of a cluster for the tests: a process can be
// ended in order or killed, started again, and looked at through its log, which
// goes on over all starts.
//
// It knows nothing about what a program does. Where it runs, in which namespaces
// of the kernel, is up to the caller's Start function.
package process
