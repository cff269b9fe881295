package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

const (
	// markerFile tells a directory of the sandbox from anybody else's.
	markerFile = "sandbox"
	markerText = "This directory belongs to device-scheduler's sandbox: a Kubernetes control plane for trying things out.\n" +
		"Stop the sandbox before removing it. Nothing in it is worth keeping.\n"
	lockFile = "lock"
)

// directory is the place on disk of one control plane, locked against a second
// one.
type directory struct {
	path      string
	temporary bool // made by us under the system's temporary directory
	lock      *fileutil.LockedFile
}

// openDirectory makes or takes over path and locks it; an empty path means a
// new temporary directory. It refuses a directory that holds files of others.
func openDirectory(path string) (*directory, error) {
	dir := &directory{path: path, temporary: path == ""}
	if dir.temporary {
		made, err := os.MkdirTemp("", "sandbox-")
		if err != nil {
			return nil, fmt.Errorf("create temporary directory: %w", err)
		}
		dir.path = made
	}
	if err := dir.claim(); err != nil {
		if dir.temporary {
			err = errors.Join(err, os.RemoveAll(dir.path))
		}
		return nil, err
	}
	return dir, nil
}

// claim checks that the directory is ours to use, marks it and takes the lock.
func (d *directory) claim() error {
	absolute, err := filepath.Abs(d.path)
	if err != nil {
		return fmt.Errorf("resolve directory %q: %w", d.path, err)
	}
	d.path = absolute
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	_, err = os.Stat(d.file(markerFile))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(entries) > 0:
		return fmt.Errorf("use directory %s: it is not empty and was not made by the sandbox (it has no file %q): "+
			"name an empty or new directory, or none for a temporary one", d.path, markerFile)
	case errors.Is(err, fs.ErrNotExist):
		if err := os.WriteFile(d.file(markerFile), []byte(markerText), 0o600); err != nil {
			return fmt.Errorf("mark directory: %w", err)
		}
	case err != nil:
		return fmt.Errorf("look for the sandbox's mark: %w", err)
	}

	d.lock, err = fileutil.TryLockFile(d.file(lockFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return fmt.Errorf("lock directory %s: another sandbox is running in it: stop that one or name another directory", d.path)
	}
	if err != nil {
		return fmt.Errorf("lock directory %s: %w", d.path, err)
	}
	return nil
}

// file returns the path of a file inside the directory.
func (d *directory) file(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

// subdirectory makes a directory inside and returns its path.
func (d *directory) subdirectory(name string) (string, error) {
	path := d.file(name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("create directory: %w", err)
	}
	return path, nil
}

// release gives the lock back and, unless keep is set, removes a temporary
// directory. A directory that the caller named stays as it is: a later sandbox
// continues with it.
func (d *directory) release(keep bool) error {
	err := d.lock.Close()
	if d.temporary && !keep {
		err = errors.Join(err, os.RemoveAll(d.path))
	}
	return err
}
