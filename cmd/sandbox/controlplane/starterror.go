package controlplane

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// tailLines and tailBytes bound how much of a log an error shows.
const (
	tailLines = 15
	tailBytes = 8 << 10
)

// StartError says which component did not start, and why.
type StartError struct {
	Component string
	LogFile   string
	LogTail   string // the last lines that this run of the component logged
	Err       error
}

// Error names the component, the reason and the end of its log.
func (e *StartError) Error() string {
	if e.LogTail == "" {
		return fmt.Sprintf("start %s: %v; it logged nothing", e.Component, e.Err)
	}
	return fmt.Sprintf("start %s: %v; the end of %s:\n%s", e.Component, e.Err, e.LogFile, e.LogTail)
}

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// lostPort tells whether the component found its port taken: somebody else was
// faster between picking the port and listening on it.
func (e *StartError) lostPort() bool {
	return strings.Contains(e.LogTail, "address already in use")
}

// LogTail returns the last lines of a log file, none from before the offset
// start. A log that cannot be read says so in its place: the text is only ever
// shown next to the error that matters.
func LogTail(file string, start int64) string {
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(start, info.Size()-tailBytes)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
