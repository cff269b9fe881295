// Package driver is a DRA driver for devices that do not exist, to be run beside
// a real kubelet. It is what makes the choice of a scheduler visible: a container
// finds one environment variable for each device that was prepared for it, with
// the device's name as its value.
//
// Hardware decides which devices a node has and what is published about them;
// Spec decides what a container gets to see, through CDI. Both are pure. Plugin
// does what the kubelet asks for, with the files of the CDI directory as its only
// memory, so that a driver that is killed and started again knows what it knew.
// Control lets a test break the hardware or the driver while it runs.
//
// It never decides who gets which device: it takes a claim's status as it is, and
// only refuses what is not its own or is in use already.
package driver
