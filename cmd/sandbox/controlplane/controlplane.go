package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// startAttempts bounds how often Start picks other ports when a component finds
// its port taken by somebody else.
const startAttempts = 3

// ControlPlane is a running control plane. Safe for concurrent use.
type ControlPlane struct {
	settings   *settings
	components []*Component // in starting order
	failed     chan error
	stop       func() error
}

// Start builds a control plane and returns once it serves: the API server
// answers, and with a controller manager pods can be created in the namespace
// "default". The caller owns the result and must call Stop. ctx bounds the start
// only. After an error nothing runs any more; when a component is to blame the
// error is or wraps a *StartError.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	dir, err := openDirectory(options.Dir)
	if err != nil {
		return nil, err
	}
	settings, err := newSettings(options, dir)
	if err != nil {
		return nil, errors.Join(err, dir.release(options.KeepDir))
	}
	cp := &ControlPlane{settings: settings}
	cp.stop = sync.OnceValue(cp.stopAll)

	timeout := fmt.Errorf("the control plane was not ready within %s", options.StartTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, options.StartTimeout, timeout)
	defer cancel()
	if err := cp.start(ctx); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

// start starts everything, with other ports when one of them was lost.
func (cp *ControlPlane) start(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := cp.startComponents(ctx)
		var startErr *StartError
		if err == nil || attempt == startAttempts || !errors.As(err, &startErr) || !startErr.lostPort() {
			return err
		}
		cp.printf("%s: its port was taken meanwhile, starting over with other ports\n", startErr.Component)
		if err := cp.stopComponents(); err != nil {
			return err
		}
	}
}

func (cp *ControlPlane) startComponents(ctx context.Context) error {
	if err := cp.settings.choosePorts(); err != nil {
		return err
	}
	// One that dies while a later one starts makes waiting pointless.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	failed := make(chan error, 1)
	cp.failed = failed
	cp.components = cp.settings.components(func(err error) {
		cancel(err)
		select {
		case failed <- err:
		default: // one is enough: the first is the cause
		}
	})
	for _, c := range cp.components {
		began := time.Now()
		if err := c.Start(ctx); err != nil {
			return err
		}
		cp.printf("%s: ready in %.1fs\n", c.name, time.Since(began).Seconds())
	}
	if cp.settings.options.WithoutControllerManager {
		return nil
	}
	return cp.settings.awaitDefaultServiceAccount(ctx)
}

// Kubeconfig returns the path of a kubeconfig file with an administrator's
// credential. It holds everything itself and works with any kubectl.
func (cp *ControlPlane) Kubeconfig() string { return cp.settings.dir.file(adminKubeconfig) }

// Dir returns the directory with data, logs and certificates.
func (cp *ControlPlane) Dir() string { return cp.settings.dir.path }

// RESTConfig returns an administrator's client configuration, without
// client-side rate limit. The caller owns it.
func (cp *ControlPlane) RESTConfig() *rest.Config { return cp.settings.restConfig() }

// Component returns the named component, nil when it was left out.
func (cp *ControlPlane) Component(name string) *Component {
	i := slices.IndexFunc(cp.components, func(c *Component) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return cp.components[i]
}

// Components returns all components in starting order. The caller owns the slice.
func (cp *ControlPlane) Components() []*Component { return slices.Clone(cp.components) }

// Failed delivers one error when a component ends without having been asked to.
// Component.Kill and Component.Stop do not count.
func (cp *ControlPlane) Failed() <-chan error { return cp.failed }

// Stop ends all components in reverse starting order, waits for them, gives the
// directory back, and removes it if it was temporary. Further calls return the
// first one's result.
func (cp *ControlPlane) Stop() error { return cp.stop() }

func (cp *ControlPlane) stopAll() error {
	return errors.Join(cp.stopComponents(), cp.settings.dir.release(cp.settings.options.KeepDir))
}

func (cp *ControlPlane) stopComponents() error {
	var errs []error
	for _, c := range slices.Backward(cp.components) {
		if c.PID() == 0 {
			continue
		}
		errs = append(errs, c.Stop())
		cp.printf("%s: stopped\n", c.name)
	}
	return errors.Join(errs...)
}

// printf reports progress. A writer that fails must not stop a control plane.
func (cp *ControlPlane) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(cp.settings.options.Out, format, args...)
}
