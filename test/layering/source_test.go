package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writes are the methods of API clients that change something.
var writes = []string{"Create", "Update", "UpdateStatus", "Patch", "Apply", "ApplyStatus", "Delete", "DeleteCollection", "Evict", "EvictV1"}

// sources parses the Go files below a folder of the project that are not tests,
// by their path from there.
func sources(t *testing.T, folder string) (map[string]*ast.File, *token.FileSet) {
	t.Helper()
	files, positions := make(map[string]*ast.File), token.NewFileSet()
	root := filepath.Join("..", "..", folder)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		files[filepath.ToSlash(name)] = file
		return err
	})
	if err != nil {
		t.Fatalf("parse %s: %v", folder, err)
	}
	if len(files) == 0 {
		t.Fatalf("there are no Go files in %s", folder)
	}
	return files, positions
}

// isClient tells whether a call is made through an API client: somewhere in its
// chain an API group is selected, as in client.CoreV1().Pods(namespace), or the
// claims of the writer.
func isClient(call ast.Expr) bool {
	for {
		switch typed := call.(type) {
		case *ast.CallExpr:
			call = typed.Fun
		case *ast.SelectorExpr:
			if _, version, found := strings.Cut(typed.Sel.Name, "V"); found && version != "" && version[0] >= '1' && version[0] <= '9' || typed.Sel.Name == "claims" {
				return true
			}
			call = typed.X
		default:
			return false
		}
	}
}

// takesContext tells whether the first argument is a context, as for the
// methods of API clients and not for those of a cache or a map.
func takesContext(call *ast.CallExpr) bool {
	if len(call.Args) < 2 {
		return false
	}
	name, ok := call.Args[0].(*ast.Ident)
	return ok && strings.Contains(strings.ToLower(name.Name), "ctx")
}

// TestOneWriter: a write that fails half-way must be taken back, and
// claimwriter is the only place that knows how.
func TestOneWriter(t *testing.T) {
	files, positions := sources(t, "plugins")
	found := 0
	for name, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(writes, method.Sel.Name) || !isClient(method.X) && !takesContext(call) {
				return true
			}
			if strings.HasPrefix(name, "deviceallocation/claimwriter/") {
				found++
				return true
			}
			t.Errorf("%s: calls %s: only claimwriter writes to the API server, it takes back what fails half-way",
				positions.Position(call.Pos()), method.Sel.Name)
			return true
		})
	}
	if found < 5 {
		t.Errorf("only %d writes are found in claimwriter: this test has become blind", found)
	}
}

// TestNoClock: a search that looks at the clock cannot be repeated.
func TestNoClock(t *testing.T) {
	files, positions := sources(t, filepath.Join("plugins", "deviceallocation"))
	for name, file := range files {
		folder, _, below := strings.Cut(name, "/")
		if !below || slices.Contains(outside, folder) {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			selected, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := selected.X.(*ast.Ident)
			if ok && of.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"}, selected.Sel.Name) {
				t.Errorf("%s: uses time.%s: the core has no clock, its budget is in steps", positions.Position(selected.Pos()), selected.Sel.Name)
			}
			return true
		})
		for _, statement := range goStatements(file) {
			t.Errorf("%s: starts a goroutine: the core leaves that to its callers", positions.Position(statement.Pos()))
		}
	}
}

func goStatements(file *ast.File) []*ast.GoStmt {
	var statements []*ast.GoStmt
	ast.Inspect(file, func(node ast.Node) bool {
		if statement, ok := node.(*ast.GoStmt); ok {
			statements = append(statements, statement)
		}
		return true
	})
	return statements
}
