package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// behaviours is the page that says where we check what kube-scheduler checks.
const behaviours = "test/integration/BEHAVIOURS.md"

// row is a line of one of its tables.
type row struct {
	number int
	// source is the folder of kube-scheduler's tests, and heading what the
	// heading above says of it: a file, or a file and a function. Both are empty
	// for tables of other origin.
	source, heading string
	cells           []string
}

var (
	sourceHeading = regexp.MustCompile("^## .*`(.+)`$")
	separator     = regexp.MustCompile(`^\|[-|]+\|$`)
	reference     = regexp.MustCompile("`([a-z]+)\\.((?:Test|Fuzz)\\w+)(?:/([^`]+))?`")
)

// rows reads the tables.
func rows(t *testing.T) []row {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", behaviours))
	if err != nil {
		t.Fatal(err)
	}
	var found []row
	var source, heading string
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "## "):
			source, heading = "", ""
			if match := sourceHeading.FindStringSubmatch(line); match != nil {
				source = match[1]
			}
		case strings.HasPrefix(line, "### "):
			heading = strings.TrimPrefix(line, "### ")
		case strings.HasPrefix(line, "|") && !separator.MatchString(line) && !separator.MatchString(lines[i+1]):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for j := range cells {
				cells[j] = strings.TrimSpace(cells[j])
			}
			found = append(found, row{number: i + 1, source: source, heading: heading, cells: cells})
		}
	}
	if len(found) < 100 {
		t.Fatalf("%s has only %d rows: this test has become blind", behaviours, len(found))
	}
	return found
}

// tests has the functions and the texts of a package's tests.
type tests struct{ functions, texts map[string]bool }

// ownTests reads the tests of the project by the name of their folder.
func ownTests(t *testing.T) map[string]*tests {
	t.Helper()
	found := make(map[string]*tests)
	for _, folder := range []string{"plugins", "test", "config", "cmd"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name := filepath.Base(filepath.Dir(path))
			if found[name] == nil {
				found[name] = &tests{functions: make(map[string]bool), texts: make(map[string]bool)}
			}
			found[name].add(file)
			return nil
		})
		if err != nil {
			t.Fatalf("parse tests of %s: %v", folder, err)
		}
	}
	return found
}

func (s *tests) add(file *ast.File) {
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil {
			s.functions[function.Name.Name] = true
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if text, ok := textOf(node); ok {
			s.texts[text] = true
		}
		return true
	})
}

// textOf returns the value of a string literal.
func textOf(node ast.Node) (string, bool) {
	literal, ok := node.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

// TestBehavioursHaveTests: a table that names tests is worth something only as
// long as the tests exist.
func TestBehavioursHaveTests(t *testing.T) {
	own := ownTests(t)
	named := 0
	for _, r := range rows(t) {
		for _, cell := range r.cells {
			if cell == "" {
				t.Errorf("%s:%d: a cell is empty: name the test, or say why there is none", behaviours, r.number)
			}
		}
		if len(r.cells) != 3 {
			t.Errorf("%s:%d: %d cells, want 3", behaviours, r.number, len(r.cells))
			continue
		}
		for _, match := range reference.FindAllStringSubmatch(r.cells[2], -1) {
			named++
			name, function, text := match[1], match[2], match[3]
			if found := own[name]; found == nil || !found.functions[function] || text != "" && !found.texts[text] {
				t.Errorf("%s:%d: there is no test %s", behaviours, r.number, strings.Trim(match[0], "`"))
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d tests are named: this test has become blind", named)
	}
}
