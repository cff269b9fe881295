package demo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Options says what Run demonstrates.
type Options struct {
	// Binary is the sandbox binary, which runs the control plane.
	Binary string
	// Scheduler is the binary of device-scheduler.
	Scheduler string
	// Config is the shipped KubeSchedulerConfiguration.
	Config string
	// Examples is the directory of the examples.
	Examples string
	// Dir holds all files; it must be new or empty and stays at the end. Empty
	// means a temporary one, which disappears.
	Dir string
	// Keep leaves everything running at the end until ctx is done.
	Keep bool
	// Out receives progress and results. It must not be nil.
	Out io.Writer
}

// check refuses what cannot work before anything is started.
func (o *Options) check() error {
	info, err := os.Stat(o.Scheduler)
	if err != nil {
		return fmt.Errorf("find scheduler: %w: build it with \"make bin/device-scheduler\" or name it with --scheduler", err)
	}
	if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("find scheduler: %s is not an executable file: name it with --scheduler", o.Scheduler)
	}
	// A name without slash would be looked up in PATH.
	if o.Scheduler, err = filepath.Abs(o.Scheduler); err != nil {
		return fmt.Errorf("find scheduler: %w", err)
	}
	if _, err := os.Stat(o.Config); err != nil {
		return fmt.Errorf("find scheduler configuration: %w: name it with --config", err)
	}
	if o.Dir == "" {
		return nil
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look into directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("use directory %s: it is not empty, and the examples need a cluster whose devices are free: "+
			"name a new directory with --dir, or none for a temporary one", o.Dir)
	}
	return nil
}
