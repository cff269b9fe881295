package demo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	workloadFile = "workload.yaml"
	expectFile   = "expect.yaml"
	// namespacePrefix and the example's name make up the name of its namespace.
	namespacePrefix = "example-"
)

// Example is one directory of examples.
type Example struct {
	Name    string
	Title   string // the first heading of its README
	Objects []*unstructured.Unstructured
	Expect  *Expectation
}

func (e *Example) namespace() string { return namespacePrefix + e.Name }

// LoadExamples reads all examples below a directory, in alphabetical order. It
// reads everything before anything is started: a typo should not cost a start.
func LoadExamples(dir string) ([]*Example, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read examples: %w: name their directory with --examples", err)
	}
	var examples []*Example
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		example, err := loadExample(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		examples = append(examples, example)
	}
	if len(examples) == 0 {
		return nil, fmt.Errorf("read examples: %s holds none: name their directory with --examples", dir)
	}
	return examples, nil
}

func loadExample(dir string) (*Example, error) {
	example := &Example{Name: filepath.Base(dir)}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read example %s: %w", dir, err)
	}
	// What the workload needs (a namespace, a rule) comes before the workload.
	slices.SortStableFunc(files, func(a, b string) int { return rank(a) - rank(b) })
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read example: %w", err)
		}
		if filepath.Base(file) == expectFile {
			if example.Expect, err = decodeExpectation(text); err != nil {
				return nil, fmt.Errorf("decode %s: %w", file, err)
			}
			continue
		}
		objects, err := decodeObjects(text)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", file, err)
		}
		example.Objects = append(example.Objects, objects...)
	}
	if example.Expect == nil || len(example.Objects) == 0 {
		return nil, fmt.Errorf("read example %s: it needs %s and %s", dir, workloadFile, expectFile)
	}
	if example.Title, err = title(filepath.Join(dir, "README.md")); err != nil {
		return nil, fmt.Errorf("read example %s: %w", dir, err)
	}
	return example, nil
}

func rank(file string) int {
	switch filepath.Base(file) {
	case "namespace.yaml":
		return 0
	case workloadFile:
		return 2
	default:
		return 1
	}
}

func decodeObjects(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for i := 1; ; i++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if len(object.Object) == 0 {
			continue // comments only
		}
		if object.GetKind() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("document %d: kind and metadata.name are needed", i)
		}
		objects = append(objects, object)
	}
}

func title(readme string) (string, error) {
	text, err := os.ReadFile(readme)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	heading, ok := strings.CutPrefix(first, "# ")
	if !ok {
		return "", fmt.Errorf("%s does not begin with a heading", readme)
	}
	return strings.ReplaceAll(heading, "`", ""), nil
}
