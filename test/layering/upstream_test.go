package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBehavioursAreComplete: whatever kube-scheduler's own tests check has a
// row. It fails when a new version of Kubernetes brings cases that nobody has
// looked at, and names them.
func TestBehavioursAreComplete(t *testing.T) {
	listed := make(map[string]bool) // source, file and case
	sources := make(map[string]bool)
	for _, r := range rows(t) {
		if r.source == "" {
			continue
		}
		sources[r.source] = true
		file, function, below := strings.Cut(r.heading, ": ")
		name := strings.Trim(r.cells[0], "`")
		if below {
			name = function + "/" + name
		}
		listed[r.source+" "+file+" "+name] = true
	}
	if len(sources) != 2 {
		t.Errorf("%s has tables for %d folders of kube-scheduler's tests, want 2", behaviours, len(sources))
	}
	found := 0
	for source := range sources {
		for file, cases := range upstreamCases(t, source) {
			for _, name := range cases {
				found++
				key := source + " " + file + " " + name
				if !listed[key] {
					t.Errorf("%s has no row for %s in %s/%s", behaviours, name, source, file)
				}
				delete(listed, key)
			}
		}
	}
	for key := range listed {
		t.Errorf("%s has a row for a case that kube-scheduler does not have (any more): %s", behaviours, key)
	}
	if found < 300 {
		t.Errorf("only %d cases are found: this test has become blind", found)
	}
}

// upstreamCases returns the test cases in a folder of the module
// k8s.io/kubernetes, by file, as function/case. A test without cases is listed
// by its function alone, unless another one runs it as its case.
func upstreamCases(t *testing.T, folder string) map[string][]string {
	t.Helper()
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatalf("find module k8s.io/kubernetes: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(output)), filepath.FromSlash(folder))
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	var names []string
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files, names = append(files, file), append(names, entry.Name())
	}
	run := make(map[string]bool) // functions that others run
	for _, file := range files {
		eachFunction(file, func(function *ast.FuncDecl) { noteRun(function, run) })
	}
	cases := make(map[string][]string)
	for i, file := range files {
		eachFunction(file, func(function *ast.FuncDecl) {
			name := function.Name.Name
			found := casesOf(function)
			for _, c := range found {
				cases[names[i]] = append(cases[names[i]], name+"/"+c)
			}
			if len(found) == 0 && strings.HasPrefix(strings.ToLower(name), "test") && name != "TestMain" && !run[name] && !delegates(function) {
				cases[names[i]] = append(cases[names[i]], name)
			}
		})
	}
	return cases
}

func eachFunction(file *ast.File, do func(*ast.FuncDecl)) {
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil && function.Body != nil {
			do(function)
		}
	}
}

// configurations is the function that runs everything in several
// configurations. Those are its cases; what it runs has rows of its own.
const configurations = "run"

// noteRun notes the functions that a function runs as its cases.
func noteRun(function *ast.FuncDecl, run map[string]bool) {
	if function.Name.Name == configurations {
		return
	}
	ast.Inspect(function.Body, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || !isRun(call) {
			return true
		}
		ast.Inspect(call, func(node ast.Node) bool {
			if name, ok := node.(*ast.Ident); ok && strings.HasPrefix(name.Name, "test") {
				run[name.Name] = true
			}
			return true
		})
		return true
	})
}

// isRun tells whether a call runs a case under a constant name.
func isRun(call *ast.CallExpr) bool {
	_, ok := runName(call)
	return ok
}

func runName(call *ast.CallExpr) (string, bool) {
	switch called := call.Fun.(type) {
	case *ast.SelectorExpr:
		if called.Sel.Name == "Run" && len(call.Args) > 1 {
			return textOf(call.Args[0])
		}
	case *ast.Ident:
		if called.Name == "runSubTest" && len(call.Args) > 1 {
			return textOf(call.Args[1])
		}
	}
	return "", false
}

// delegates tells whether all that a function does is to call a test.
func delegates(function *ast.FuncDecl) bool {
	delegate := false
	for _, statement := range function.Body.List {
		expression, ok := statement.(*ast.ExprStmt)
		if !ok {
			continue
		}
		if call, ok := expression.X.(*ast.CallExpr); ok {
			if called, ok := call.Fun.(*ast.Ident); ok && strings.HasPrefix(called.Name, "test") {
				delegate = true
			}
		}
	}
	return delegate && len(function.Body.List) <= 2
}

// steps is the function whose cases each run in the same steps, which have
// names but are no cases.
const steps = "testPlugin"

// casesOf returns the names of the cases of a test: the keys of its table, what
// the entries of its table call their name, and what it runs under a name.
func casesOf(function *ast.FuncDecl) []string {
	var found []string
	ast.Inspect(function.Body, func(node ast.Node) bool {
		switch typed := node.(type) {
		case *ast.CompositeLit:
			found = append(found, casesOfTable(typed)...)
		case *ast.CallExpr:
			name, ok := runName(typed)
			if ok && function.Name.Name != configurations && function.Name.Name != steps {
				found = append(found, name)
			}
		}
		return true
	})
	return found
}

func casesOfTable(table *ast.CompositeLit) []string {
	var found []string
	switch typed := table.Type.(type) {
	case *ast.MapType:
		if key, ok := typed.Key.(*ast.Ident); !ok || key.Name != "string" || !isCase(typed.Value) {
			return nil
		}
		for _, element := range table.Elts {
			pair := element.(*ast.KeyValueExpr)
			if name, ok := textOf(pair.Key); ok {
				found = append(found, name)
			}
		}
	case *ast.ArrayType:
		if _, ok := typed.Elt.(*ast.StructType); !ok {
			return nil
		}
		for _, element := range table.Elts {
			if entry, ok := element.(*ast.CompositeLit); ok {
				found = append(found, nameOf(entry)...)
			}
		}
	}
	return found
}

// isCase tells whether the entries of a table are cases: structs of the test's
// own package.
func isCase(value ast.Expr) bool {
	switch typed := value.(type) {
	case *ast.StructType:
		return true
	case *ast.Ident:
		return !slices.Contains([]string{"string", "int", "int64", "bool", "any"}, typed.Name)
	default:
		return false
	}
}

func nameOf(entry *ast.CompositeLit) []string {
	for _, element := range entry.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := pair.Key.(*ast.Ident); !ok || key.Name != "name" {
			continue
		}
		if name, ok := textOf(pair.Value); ok {
			return []string{name}
		}
	}
	return nil
}
