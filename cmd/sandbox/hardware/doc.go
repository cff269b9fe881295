// Package hardware describes simulated machines: nodes with the ResourceSlices
// that their device drivers would publish, and the DeviceClasses to ask for the
// devices.
//
// It decides what the machines look like: the YAML files in profiles (one kind
// of machine each), clusters (which machines make up a cluster) and classes.yaml.
// Attributes, capacities and their types follow what real drivers publish; only
// the names of the drivers, below example.com, are made up. Apply brings the
// objects into a cluster the way node and driver would.
//
// It never simulates what a node does (kwok's stages in package controlplane do)
// and never allocates a device.
//
// Who calls it: `sandbox up`, `sandbox hardware`, the demo, and the tests.
package hardware
