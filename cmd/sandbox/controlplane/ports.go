package controlplane

import (
	"errors"
	"fmt"
	"net"
)

// loopback is the only address that anything here listens on.
const loopback = "127.0.0.1"

// ports of one control plane on the loopback address.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager, kwok int
}

// pickPorts asks the system for free ports. All listeners are open at the same
// time, so that the ports differ; another process can still take one before the
// component does, which Start answers by picking again.
func pickPorts() (p ports, err error) {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiServer, &p.controllerManager, &p.kwok} {
		l, err := net.Listen("tcp4", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return p, fmt.Errorf("find free port: %w", err)
		}
		listeners = append(listeners, l)
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

// secureURL returns the HTTPS address of a port.
func secureURL(port int) string {
	return fmt.Sprintf("https://%s:%d", loopback, port)
}
