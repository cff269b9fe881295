package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// Options say which driver runs where.
type Options struct {
	// Driver is GPU or NIC.
	Driver string
	// Node is the name of the node.
	Node string
	// Kubeconfig is the path of a kubeconfig file with the right to read nodes
	// and claims and to write ResourceSlices.
	Kubeconfig string
	// KubeletDirectory is the root directory of the kubelet.
	KubeletDirectory string
	// CDIDirectory is where the container runtime looks for CDI files.
	CDIDirectory string
}

// Directory is where a driver has its sockets.
func Directory(kubeletDirectory, driver string) string {
	return filepath.Join(kubeletDirectory, "plugins", driver)
}

// Run publishes the devices and serves the kubelet until ctx ends. When the
// driver is told to crash, the process ends.
func Run(ctx context.Context, o Options) error {
	hardware, err := NewHardware(o.Driver, o.Node)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	dir := Directory(o.KubeletDirectory, o.Driver)
	registry := filepath.Join(o.KubeletDirectory, "plugins_registry")
	for _, path := range []string{dir, registry, o.CDIDirectory} {
		if err := os.MkdirAll(path, 0o750); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
	}
	plugin := NewPlugin(o.Driver, o.CDIDirectory, hardware, func() { os.Exit(1) })
	helper, err := kubeletplugin.Start(ctx, plugin,
		kubeletplugin.DriverName(o.Driver), kubeletplugin.NodeName(o.Node), kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(registry), kubeletplugin.PluginDataDirectoryPath(dir),
		kubeletplugin.HealthService(false))
	if err != nil {
		return fmt.Errorf("start plugin: %w", err)
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, plugin.Resources()); err != nil {
		return fmt.Errorf("publish devices: %w", err)
	}
	listener, err := listen(filepath.Join(dir, ControlSocket))
	if err != nil {
		return err
	}
	return serve(ctx, listener, handler{plugin, helper.PublishResources})
}

// listen makes the control socket anew: a driver that was killed leaves its own
// behind.
func listen(socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove old control socket: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for orders: %w", err)
	}
	return listener, nil
}

// serve takes orders until ctx ends.
func serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve orders: %w", err)
	}
	return nil
}
