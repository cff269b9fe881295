// Package extendedresource turns a pod's requests for extended resources such
// as example.com/gpu: 1, which a DeviceClass backs with devices, into the
// requests of a claim (KEP-5004).
//
// It decides how many devices each container gets and which containers share
// them, one after the other. It never decides whether a node offers a resource
// through devices or through a device plugin; the caller tells it.
package extendedresource
