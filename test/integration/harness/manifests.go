package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// manifests are the files of manifests/base that give the scheduler its
// identity and its rights, in the order in which they can be created.
var manifests = []string{
	"namespace.yaml", "serviceaccount.yaml", "clusterrole.yaml", "clusterrolebinding.yaml",
	"role-lease.yaml", "rolebinding-authentication.yaml",
}

// install creates what the manifests say, byte for byte.
func install(ctx context.Context, client kubernetes.Interface) error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	for _, name := range manifests {
		content, err := os.ReadFile(filepath.Join(root, "manifests", "base", name))
		if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		if err := installFile(ctx, client, content); err != nil {
			return fmt.Errorf("apply manifests/base/%s: %w", name, err)
		}
	}
	return nil
}

func installFile(ctx context.Context, client kubernetes.Interface, content []byte) error {
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content)))
	buffer := make([]byte, len(content)+1)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(buffer[:n], nil, nil)
		if err != nil {
			return err
		}
		if err := installObject(ctx, client, object); err != nil {
			return err
		}
	}
}

func installObject(ctx context.Context, client kubernetes.Interface, object runtime.Object) (err error) {
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	switch o := object.(type) {
	case *corev1.Namespace:
		_, err = client.CoreV1().Namespaces().Create(ctx, o, options)
	case *corev1.ServiceAccount:
		_, err = client.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, options)
	case *rbacv1.ClusterRole:
		_, err = client.RbacV1().ClusterRoles().Create(ctx, o, options)
	case *rbacv1.ClusterRoleBinding:
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, o, options)
	case *rbacv1.Role:
		_, err = client.RbacV1().Roles(o.Namespace).Create(ctx, o, options)
	case *rbacv1.RoleBinding:
		_, err = client.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, options)
	default:
		err = fmt.Errorf("object of type %T is not expected here: teach the harness", object)
	}
	return err
}
