package harness

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// Proxy stands between a scheduler and the API server and can answer in its
// place, before or after the request has had its effect. Safe for concurrent
// use.
type Proxy struct {
	url      string
	ca       []byte // PEM of what its certificate is signed with
	listener *httptest.Server
	forward  http.Handler
	mutex    sync.Mutex
	hook     Interceptor
}

// Interceptor handles a request in place of the API server. It returns false if
// it wants nothing to do with it; forward then passes the request on, as it
// does for an interceptor that calls it. It may be called in parallel.
type Interceptor func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool

// StartProxy runs a proxy for the time of the test. It passes everything on
// until Intercept says otherwise.
func (e *Env) StartProxy() *Proxy {
	e.t.Helper()
	p, err := NewProxy(e.Cluster.RESTConfig())
	e.check(err, "start proxy")
	e.t.Cleanup(p.Close)
	return p
}

// NewProxy runs a proxy in front of an API server. The caller must Close it.
func NewProxy(config *rest.Config) (*Proxy, error) {
	config = rest.AnonymousClientConfig(config)
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("parse the API server's address: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	p := &Proxy{forward: &httputil.ReverseProxy{
		// The client's token travels in the header.
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	p.listener = httptest.NewUnstartedServer(p)
	p.listener.Config.ErrorLog = log.New(io.Discard, "", 0) // schedulers are killed in the middle of requests
	// Clients send their token over TLS only.
	p.listener.StartTLS()
	p.url = p.listener.URL
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.listener.Certificate().Raw})
	return p, nil
}

// URL is where the proxy listens, on 127.0.0.1; CA is the PEM of the certificate
// that a client must trust.
func (p *Proxy) URL() string { return p.url }

// CA: see URL.
func (p *Proxy) CA() []byte { return p.ca }

// Close ends all connections and the proxy.
func (p *Proxy) Close() {
	p.listener.CloseClientConnections()
	p.listener.Close()
}

// Intercept sets the interceptor; nil passes everything on.
func (p *Proxy) Intercept(hook Interceptor) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.hook = hook
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mutex.Lock()
	hook := p.hook
	p.mutex.Unlock()
	if hook != nil && hook(w, r, p.forward) {
		return
	}
	p.forward.ServeHTTP(w, r)
}
