// Package image writes the archive of the one image that the tests use, so that
// no registry is needed: a layer with a single static binary, under two names. The
// container runtime takes one of them for the containers that hold pods together,
// the other is that of the tests' containers.
package image
