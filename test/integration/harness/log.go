package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// tailLines is how much of a scheduler's log a failed test shows.
const tailLines = 60

// Log returns the log from an offset on.
func (s *Scheduler) Log(from int64) ([]byte, error) {
	file, err := os.Open(s.logFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the scheduler's log: %w", err)
	}
	log, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's log: %w", err)
	}
	return log, nil
}

func (s *Scheduler) logSize() (int64, error) {
	info, err := os.Stat(s.logFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the scheduler's log: %w", err)
	}
	return info.Size(), nil
}

// Tail returns the last lines of the log from an offset on.
func (s *Scheduler) Tail(from int64) string {
	log, err := s.Log(from)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(log), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// noRight is logged for a right that the manifests do not grant.
const noRight = "forbidden"

// alarms are texts that no log of a scheduler may have: a missing right, a
// crash, a race in a build with -race.
var alarms = []string{noRight, "panic", "DATA RACE"}

// Alarming returns the lines of a log that must not be there. An API server
// that was started again refuses everybody until it has read the roles, so
// that missing rights do not count then.
func Alarming(log []byte, restarted bool) []string {
	var found []string
	for line := range bytes.Lines(log) {
		text := string(line)
		// Namespaces of finished tests refuse new events; that is no lack of rights.
		if strings.Contains(text, "because it is being terminated") {
			continue
		}
		for _, alarm := range alarms {
			if strings.Contains(text, alarm) && !(restarted && alarm == noRight) {
				found = append(found, strings.TrimSpace(text))
				break
			}
		}
	}
	return found
}
