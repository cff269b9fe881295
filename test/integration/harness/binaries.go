package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// SchedulerVariable names the environment variable with the path of the
// scheduler's binary; controlplane.BinaryVariable is its sister.
const SchedulerVariable = "DEVICE_SCHEDULER_BINARY"

// binary returns the file that the variable names, or builds the command into
// dir.
func binary(variable, command, dir string) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	if path := os.Getenv(variable); path != "" {
		if !filepath.IsAbs(path) {
			// People name it as they see it, from the top of the repository.
			path = filepath.Join(root, path)
		}
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("find the binary that %s names: %w", variable, err)
		}
		return path, nil
	}
	path := filepath.Join(dir, filepath.Base(command))
	fmt.Fprintf(os.Stderr, "%s is not set: building %s, which takes minutes when nothing is cached\n", variable, command)
	build := exec.Command("go", "build", "-o", path, "./"+command)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, output)
	}
	return path, nil
}

// repositoryRoot is the directory with go.mod above the working directory,
// which is the tested package's own.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return "", fmt.Errorf("find repository: %w", err)
		}
		dir = parent
	}
}
