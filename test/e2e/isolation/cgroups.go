//go:build linux

package isolation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// containers are the paths, below the disk of a node, of what containerd keeps
// about each container that it has not removed. The last element is the
// container's ID.
var containers = []string{
	"containerd/io.containerd.grpc.v1.cri/containers/*",
	"containerd/io.containerd.grpc.v1.cri/sandboxes/*",
}

// parents are where runc makes the control group of a container: one directory in
// each hierarchy of version 1, or the only one of version 2.
var parents = []string{"/sys/fs/cgroup/*/k8s.io", "/sys/fs/cgroup/k8s.io"}

// RemoveCgroups removes the control groups of the containers that were killed on a
// node together with everything that would have removed them; disk is the node's
// directory, or a pattern for several. Other runs have theirs in the same place, so
// only known ones are touched, and their common parent goes with the last of them.
func RemoveCgroups(disk string) error {
	var ids []string
	for _, pattern := range containers {
		paths, err := filepath.Glob(filepath.Join(disk, pattern))
		if err != nil {
			return fmt.Errorf("list containers: %w", err)
		}
		for _, path := range paths {
			ids = append(ids, filepath.Base(path))
		}
	}
	var errs []error
	for _, pattern := range parents {
		found, err := filepath.Glob(pattern)
		errs = append(errs, err)
		for _, parent := range found {
			for _, id := range ids {
				if err := os.Remove(filepath.Join(parent, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, fmt.Errorf("remove control group: %w", err))
				}
			}
			_ = os.Remove(parent) // it stays as long as another run needs it
		}
	}
	return errors.Join(errs...)
}
