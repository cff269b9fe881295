package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// ControlSocket is the name of the socket, in the driver's directory, at which a
// running driver takes orders.
const ControlSocket = "control.sock"

// Order is what a driver can be told to do. Exactly one field is set.
type Order struct {
	// FailPrepares lets so many claims fail to be prepared from now on.
	FailPrepares int `json:",omitempty"`
	// CrashInPrepare ends the driver when it has prepared the next claim, before
	// it answers.
	CrashInPrepare bool `json:",omitempty"`
	// Taint adds a taint to a device.
	Taint *DeviceTaint `json:",omitempty"`
	// Withdraw names a device that is no longer published.
	Withdraw string `json:",omitempty"`
	// Repair undoes all that was done to the devices.
	Repair bool `json:",omitempty"`
	// NextGeneration distributes the devices over other slices.
	NextGeneration bool `json:",omitempty"`
}

// DeviceTaint is a device and its new taint.
type DeviceTaint struct {
	Device string
	Taint  resourceapi.DeviceTaint
}

// State is what a driver tells about itself.
type State struct {
	// Calls are those since the driver was started, the oldest first.
	Calls []Call
	// Prepared are the UIDs of the claims that are prepared, in order.
	Prepared []string
}

// handler serves orders: POST an Order, GET the State.
type handler struct {
	plugin  *Plugin
	publish func(context.Context, resourceslice.DriverResources) error
}

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		var order Order
		err := json.NewDecoder(r.Body).Decode(&order)
		if err == nil {
			err = h.obey(r.Context(), &order)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
		return
	}
	state, err := h.plugin.state()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(state) // a caller that went away does not need it
}

func (h handler) obey(ctx context.Context, order *Order) error {
	resources, err := h.plugin.obey(order)
	if err != nil {
		return err
	}
	return h.publish(ctx, resources)
}

// obey changes the plugin and returns what is to be published now.
func (p *Plugin) obey(order *Order) (resourceslice.DriverResources, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var err error
	switch {
	case order.FailPrepares > 0:
		p.failures = order.FailPrepares
	case order.CrashInPrepare:
		p.crashes = true
	case order.Taint != nil:
		err = p.hardware.Taint(order.Taint.Device, order.Taint.Taint)
	case order.Withdraw != "":
		err = p.hardware.Withdraw(order.Withdraw)
	case order.Repair:
		p.hardware.Repair()
	case order.NextGeneration:
		p.hardware.NextGeneration()
	default:
		err = errors.New("obey order: it is empty")
	}
	return p.hardware.Resources(), err
}

// Resources is what is to be published now.
func (p *Plugin) Resources() resourceslice.DriverResources {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.hardware.Resources()
}

func (p *Plugin) state() (*State, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	prepared, err := p.files.read()
	if err != nil {
		return nil, err
	}
	state := &State{Calls: slices.Clone(p.calls)}
	for uid := range prepared {
		state.Prepared = append(state.Prepared, string(uid))
	}
	slices.Sort(state.Prepared)
	return state, nil
}

// Client gives orders to a running driver. Safe for concurrent use.
type Client struct{ http http.Client }

// NewClient returns a client for a driver whose control socket has the given
// path.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	// A kept connection would outlive the driver behind it.
	return &Client{http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Give gives an order and returns when it is obeyed.
func (c *Client) Give(ctx context.Context, order Order) error {
	body, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("encode order: %w", err)
	}
	_, err = c.do(ctx, http.MethodPost, bytes.NewReader(body))
	return err
}

// State asks for the driver's state.
func (c *Client) State(ctx context.Context) (*State, error) {
	answer, err := c.do(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	state := &State{}
	if err := json.Unmarshal(answer, state); err != nil {
		return nil, fmt.Errorf("decode the driver's state: %w", err)
	}
	return state, nil
}

func (c *Client) do(ctx context.Context, method string, body io.Reader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://driver/", body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the driver: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the driver's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("driver refuses: %s", strings.TrimSpace(string(answer)))
	}
	return answer, nil
}
