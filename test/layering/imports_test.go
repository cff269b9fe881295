package layering

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	module = "github.com/device-scheduler/device-scheduler/"
	plugin = module + "plugins/deviceallocation"
)

// rooms are the packages below the plugin, lowest first: each may import those
// before it. The shell, which is the plugin itself, may import all of them.
// capacity is that low because inventory counts shared counters with its tables
// and ledger sums its amounts.
var rooms = []string{
	"recency", "device", "capacity", "persistent", "extendedresource",
	"inventory", "ledger", "selector", "problem", "allocator", "objective", "result", "reason", "verdict", "claimwriter",
}

// outside are the rooms that are not core: they do I/O.
var outside = []string{"claimwriter"}

// listed is what "go list" says about a package.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

// packages returns the project's commands, plugins and configuration by import
// path.
func packages(t *testing.T) map[string]*listed {
	t.Helper()
	found, err := list()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	return found
}

// list calls the go command once for all tests. Deps has what a package depends
// on through others as well.
var list = sync.OnceValues(func() (map[string]*listed, error) {
	command := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,GoFiles",
		module+"cmd/...", module+"plugins/...", module+"config/...")
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	found := make(map[string]*listed)
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
		found[p.ImportPath] = &p
	}
})

// room returns the name of the room that a package is, or "".
func room(path string) string {
	name, ok := strings.CutPrefix(path, plugin+"/")
	if !ok {
		return ""
	}
	return name
}

func within(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
}

func TestImports(t *testing.T) {
	found := packages(t)
	for _, name := range rooms {
		if found[plugin+"/"+name] == nil {
			t.Errorf("room %s does not exist: take it out of the list", name)
		}
	}
	for path, p := range found {
		if !strings.HasPrefix(path, module) {
			continue
		}
		t.Run(strings.TrimPrefix(path, module), func(t *testing.T) {
			checkPlace(t, p)
			if name := room(path); name != "" {
				checkRoom(t, name, p)
				if !slices.Contains(outside, name) {
					checkCore(t, p)
				}
			}
		})
	}
}

// checkPlace: what is shipped does not depend on what is not, and the plugin
// does not depend on who runs it.
func checkPlace(t *testing.T, p *listed) {
	t.Helper()
	for _, dep := range p.Deps {
		if within(dep, module+"test") {
			t.Errorf("depends on %s: the builders and checks of test/ are not for production", dep)
		}
		if within(dep, module+"cmd") && !within(p.ImportPath, module+"cmd") {
			t.Errorf("depends on %s: the plugin and its configuration must work in any command", dep)
		}
	}
}

func checkRoom(t *testing.T, name string, p *listed) {
	t.Helper()
	place := slices.Index(rooms, name)
	if place < 0 {
		t.Errorf("room %s is not in the list: a new room needs a place in the order", name)
		return
	}
	for _, imported := range p.Imports {
		if within(imported, module[:len(module)-1]) && room(imported) == "" {
			t.Errorf("imports %s: a room knows neither the shell nor the configuration, they know it", imported)
		}
		if other := room(imported); other != "" && slices.Index(rooms, other) >= place {
			t.Errorf("imports %s: a room imports only those before it in %v, so that each can be read and tested without the later ones", other, rooms)
		}
	}
}

// checkCore: the core is pure, so that a search can be tested without a control
// plane and gives the same answer every time.
func checkCore(t *testing.T, p *listed) {
	t.Helper()
	for _, dep := range p.Deps {
		if within(dep, "k8s.io/client-go", "k8s.io/kube-scheduler", "k8s.io/kubernetes") {
			t.Errorf("depends on %s: the core must be testable without API client and scheduler, and usable in other programs", dep)
		}
	}
	for _, imported := range p.Imports {
		switch {
		case within(imported, "k8s.io/klog"), imported == "log", within(imported, "log/slog"), within(imported, "github.com/go-logr"):
			t.Errorf("imports %s: the core returns what happened, the shell logs it", imported)
		case within(imported, "math/rand"), within(imported, "k8s.io/apimachinery/pkg/util/rand"), within(imported, "crypto/rand"):
			t.Errorf("imports %s: the same objects must give the same placement", imported)
		case within(imported, "os"), within(imported, "net"):
			t.Errorf("imports %s: the core does no I/O", imported)
		}
	}
}

// TestCommand: the scheduler's command puts the plugin into kube-scheduler and
// knows nothing of how it works.
func TestCommand(t *testing.T) {
	command := packages(t)[module+"cmd/device-scheduler"]
	if command == nil {
		t.Fatal("cmd/device-scheduler does not exist")
	}
	if want := []string{"command.go", "doc.go", "main.go"}; !slices.Equal(command.GoFiles, want) {
		t.Errorf("files: got %v, want %v: logic belongs into the plugin, where it can be tested", command.GoFiles, want)
	}
	for _, imported := range command.Imports {
		if room(imported) != "" {
			t.Errorf("imports %s: the command registers the plugin, it does not use its rooms", imported)
		}
	}
}
