package perf

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/yaml"
)

//go:embed objects/*.yaml
var objectFiles embed.FS

// Driver says what the simulated driver does. scheduler_perf creates objects
// one by one, which takes minutes for the slices of 5,000 nodes; this does it
// in parallel.
type Driver struct {
	// Slices are files in the folder objects, with the slices of one node.
	Slices []string `json:"slices,omitempty"`
	// Held is a file with a claim that is allocated. The size's parameter "held"
	// says how many GPUs, of GPUs in each node, are held by such claims before
	// pods come.
	Held string `json:"held,omitempty"`
	GPUs int    `json:"gpus,omitempty"`
	// Pods is a file with a pod. The size's parameter "backlog" says how many of
	// them wait all the time (see load).
	Pods string `json:"pods,omitempty"`
	// The size's parameter "rewrites" says how many slices are written anew in a
	// second, one after the other.
}

const (
	// parallel is how many requests the driver has open at a time.
	parallel = 16
	// heldNamespace has the claims that are held.
	heldNamespace = "held"
)

// at is what templates know about the node, and about the GPU for claims.
type at struct {
	Node string
	// Index is the number of the node, and GPU that of a held GPU in it.
	Index, GPU int
	// Generation is that of the pool.
	Generation int
}

// publish creates the slices of all nodes, in the order of their names.
func (d *Driver) publish(ctx context.Context, client kubernetes.Interface, nodes []corev1.Node) error {
	return each(ctx, len(nodes), func(ctx context.Context, i int) error {
		for _, file := range d.Slices {
			slices, err := render[resourceapi.ResourceSlice](file, at{Node: nodes[i].Name, Index: i, Generation: 1})
			if err != nil {
				return err
			}
			for _, slice := range slices {
				if _, err := client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
					return fmt.Errorf("create slice %s: %w", slice.Name, err)
				}
			}
		}
		return nil
	})
}

// hold allocates n claims, with GPUs picked at random, the same ones each time.
func (d *Driver) hold(ctx context.Context, client kubernetes.Interface, nodes []corev1.Node, n int) error {
	if n > len(nodes)*d.GPUs {
		return fmt.Errorf("hold %d GPUs: there are %d", n, len(nodes)*d.GPUs)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: heldNamespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	picked := rand.New(rand.NewPCG(1, 2)).Perm(len(nodes) * d.GPUs)[:n]
	return each(ctx, n, func(ctx context.Context, i int) error {
		node, gpu := picked[i]/d.GPUs, picked[i]%d.GPUs
		claims, err := render[resourceapi.ResourceClaim](d.Held, at{Node: nodes[node].Name, Index: node, GPU: gpu})
		if err != nil {
			return err
		}
		for _, claim := range claims {
			status := claim.Status
			created, err := client.ResourceV1().ResourceClaims(heldNamespace).Create(ctx, claim, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("create claim: %w", err)
			}
			created.Status = status
			if _, err := client.ResourceV1().ResourceClaims(heldNamespace).UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
				return fmt.Errorf("allocate claim: %w", err)
			}
		}
		return nil
	})
}

// rewrite writes the slices of one node after the other anew, with the next
// generation of their pool, until the context ends. It returns how many it wrote.
func (d *Driver) rewrite(ctx context.Context, client kubernetes.Interface, nodes []corev1.Node, perSecond int) (int, error) {
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for written := 0; ; written++ {
		select {
		case <-ctx.Done():
			return written, nil
		case <-ticker.C:
		}
		i := written % len(nodes)
		slices, err := render[resourceapi.ResourceSlice](d.Slices[0], at{Node: nodes[i].Name, Index: i, Generation: 2 + written/len(nodes)})
		if err != nil {
			return written, err
		}
		for _, slice := range slices {
			if _, err := client.ResourceV1().ResourceSlices().Update(ctx, slice, metav1.UpdateOptions{}); err != nil {
				if ctx.Err() != nil {
					return written, nil
				}
				return written, fmt.Errorf("rewrite slice %s: %w", slice.Name, err)
			}
		}
	}
}

// each runs work for 0 to n-1 in parallel and returns the first errors.
func each(ctx context.Context, n int, work func(context.Context, int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mutex sync.Mutex
	var errs []error
	workqueue.ParallelizeUntil(ctx, parallel, n, func(i int) {
		if err := work(ctx, i); err != nil {
			mutex.Lock()
			defer mutex.Unlock()
			errs = append(errs, err)
			cancel()
		}
	})
	return errors.Join(errs...)
}

// functions are for ranges in templates.
var functions = template.FuncMap{
	"seq": func(n int) []int {
		numbers := make([]int, n)
		for i := range numbers {
			numbers[i] = i
		}
		return numbers
	},
	"add": func(a, b int) int { return a + b },
	"mul": func(a, b int) int { return a * b },
	"div": func(a, b int) int { return a / b },
	"mod": func(a, b int) int { return a % b },
}

// render makes the objects of a file in the folder objects.
func render[T any](file string, place at) ([]*T, error) {
	content, err := objectFiles.ReadFile("objects/" + file)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	parsed, err := template.New(file).Funcs(functions).Parse(string(content))
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, place); err != nil {
		return nil, fmt.Errorf("execute template: %w", err)
	}
	var objects []*T
	documents := utilyaml.NewYAMLReader(bufio.NewReader(&text))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split %s: %w", file, err)
		}
		obj := new(T)
		if err := yaml.UnmarshalStrict(document, obj); err != nil {
			return nil, fmt.Errorf("decode %s: %w", file, err)
		}
		objects = append(objects, obj)
	}
}
