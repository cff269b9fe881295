package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
)

// Names of the image. No registry has them.
const (
	Workload = "device-scheduler.local/workload:e2e"
	Pause    = "device-scheduler.local/pause:e2e"
)

// binaryPath is where the binary is in the image.
const binaryPath = "workload"

// entry is one image in the archive's table of contents. The format is that of
// "docker save", which every runtime can import.
type entry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// configuration is the part of an image's configuration that matters here.
type configuration struct {
	Architecture string       `json:"architecture"`
	OS           string       `json:"os"`
	Config       execution    `json:"config"`
	RootFS       rootFS       `json:"rootfs"`
	History      []historyRow `json:"history"`
}

type execution struct {
	Entrypoint []string
	Cmd        []string `json:",omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type historyRow struct {
	CreatedBy string `json:"created_by"`
}

// WriteArchive writes the archive around a static binary for this machine's
// architecture. Equal binaries give equal archives.
func WriteArchive(w io.Writer, binary []byte) error {
	var layer bytes.Buffer
	if err := writeTar(&layer, file{binaryPath, 0o755, binary}); err != nil {
		return fmt.Errorf("write layer: %w", err)
	}
	layerName := fmt.Sprintf("%x.tar", sha256.Sum256(layer.Bytes()))
	files := []file{{layerName, 0o644, layer.Bytes()}}
	var entries []entry
	for _, image := range []struct {
		name string
		args []string
	}{{Workload, nil}, {Pause, []string{"pause"}}} {
		config, err := json.Marshal(configuration{
			Architecture: runtime.GOARCH,
			OS:           "linux",
			Config:       execution{Entrypoint: []string{"/" + binaryPath}, Cmd: image.args},
			RootFS:       rootFS{Type: "layers", DiffIDs: []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
			History:      []historyRow{{CreatedBy: "device-scheduler test/e2e"}},
		})
		if err != nil {
			return fmt.Errorf("encode configuration: %w", err)
		}
		name := fmt.Sprintf("%x.json", sha256.Sum256(config))
		files = append(files, file{name, 0o644, config})
		entries = append(entries, entry{Config: name, RepoTags: []string{image.name}, Layers: []string{layerName}})
	}
	contents, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("encode table of contents: %w", err)
	}
	if err := writeTar(w, append(files, file{"manifest.json", 0o644, contents})...); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

type file struct {
	name    string
	mode    int64
	content []byte
}

func writeTar(w io.Writer, files ...file) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
