package hardware

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Objects are the API objects that describe simulated hardware, in the order in
// which they were read.
type Objects struct {
	Nodes   []*corev1.Node
	Slices  []*resourcev1.ResourceSlice
	Classes []*resourcev1.DeviceClass
}

// Add appends the other objects; the pointers are shared.
func (o *Objects) Add(other *Objects) {
	o.Nodes = append(o.Nodes, other.Nodes...)
	o.Slices = append(o.Slices, other.Slices...)
	o.Classes = append(o.Classes, other.Classes...)
}

// decoder knows the kinds that a description may contain, refuses unknown and
// repeated fields, and leaves defaults to the API server.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.List{})
	scheme.AddKnownTypes(resourcev1.SchemeGroupVersion, &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{})
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// LoadFile reads a file as Load does.
func LoadFile(file string) (*Objects, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read hardware description: %w", err)
	}
	defer f.Close()
	return Load(f, file)
}

// Load reads Nodes, ResourceSlices and DeviceClasses in YAML or JSON: several
// documents, Lists, or the output of "kubectl get -o yaml" of a real cluster.
// source names the input in errors, which also name the document and the field.
func Load(r io.Reader, source string) (*Objects, error) {
	objects := &Objects{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(r))
	for i := 1; ; i++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", source, err)
		}
		if blank(document) {
			continue
		}
		if err := objects.decode(document); err != nil {
			return nil, fmt.Errorf("decode document %d of %s: %w", i, source, err)
		}
	}
}

func (o *Objects) decode(document []byte) error {
	object, kind, err := decoder.Decode(document, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			return err
		}
		return fmt.Errorf("kind %s of %s is no part of a hardware description: "+
			"it may hold v1 Nodes and resource.k8s.io/v1 ResourceSlices and DeviceClasses", meta.Kind, meta.APIVersion)
	}
	if err != nil {
		return err
	}
	switch object := object.(type) {
	case *corev1.Node:
		o.Nodes = append(o.Nodes, object)
		return named(kind, object.Name)
	case *resourcev1.ResourceSlice:
		o.Slices = append(o.Slices, object)
		return named(kind, object.Name)
	case *resourcev1.DeviceClass:
		o.Classes = append(o.Classes, object)
		return named(kind, object.Name)
	case *corev1.List:
		for i, item := range object.Items {
			if err := o.decode(item.Raw); err != nil {
				return fmt.Errorf("item %d of the list: %w", i, err)
			}
		}
		return nil
	default:
		return fmt.Errorf("unexpected type %T", object)
	}
}

// named refuses an object without metadata.name: Apply could not find it again,
// and a second Apply would create a second one.
func named(kind *schema.GroupVersionKind, name string) error {
	if name == "" {
		return fmt.Errorf("%s: metadata.name is missing: give it one (generateName does not do)", kind.Kind)
	}
	return nil
}

// blank tells whether a document has nothing but comments, separators and space.
func blank(document []byte) bool {
	for line := range bytes.Lines(document) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}
