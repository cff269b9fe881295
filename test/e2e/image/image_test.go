package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// Equal binaries give equal archives, with both names in the table of contents.
func TestWriteArchive(t *testing.T) {
	var first, second bytes.Buffer
	for _, archive := range []*bytes.Buffer{&first, &second} {
		if err := WriteArchive(archive, []byte("binary")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of one binary differ")
	}
	contents := ""
	for reader := tar.NewReader(&first); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == "manifest.json" {
			text, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			contents = string(text)
		}
	}
	for _, name := range []string{Workload, Pause} {
		if !strings.Contains(contents, `"RepoTags":["`+name+`"]`) {
			t.Errorf("table of contents lacks %s: %s", name, contents)
		}
	}
}
