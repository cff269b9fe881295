package controlplane

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

// stageFS holds what the simulated kubelets do, as configuration of kwok.
//
//go:embed stages/*.yaml
var stageFS embed.FS

// writeStages writes the stages into the sandbox's directory, where kwok reads
// them, and returns the files' paths relative to it: kwok splits its --config
// flags at commas, which the name of a directory may contain.
func writeStages(dir *directory) ([]string, error) {
	const target = "kwok"
	if _, err := dir.subdirectory(target); err != nil {
		return nil, err
	}
	entries, err := stageFS.ReadDir("stages")
	if err != nil {
		return nil, fmt.Errorf("read embedded stages: %w", err)
	}
	var files []string
	for _, entry := range entries {
		text, err := stageFS.ReadFile("stages/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read embedded stage: %w", err)
		}
		file := filepath.Join(target, entry.Name())
		if err := os.WriteFile(dir.file(file), text, 0o600); err != nil {
			return nil, fmt.Errorf("write stage: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}
