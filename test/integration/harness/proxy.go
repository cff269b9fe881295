package harness

import (
	"encoding/pem"
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
	url     string
	ca      []byte // PEM of what its certificate is signed with
	forward http.Handler
	mutex   sync.Mutex
	hook    Interceptor
}

// Interceptor handles a request in place of the API server. It returns false if
// it wants nothing to do with it; forward then passes the request on, as it
// does for an interceptor that calls it. It may be called in parallel.
type Interceptor func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool

// StartProxy runs a proxy for the time of the test. It passes everything on
// until Intercept says otherwise.
func (e *Env) StartProxy() *Proxy {
	e.t.Helper()
	config := rest.AnonymousClientConfig(e.Cluster.RESTConfig())
	server, err := url.Parse(config.Host)
	e.check(err, "parse the API server's address")
	transport, err := rest.TransportFor(config)
	e.check(err, "connect to the API server")
	p := &Proxy{forward: &httputil.ReverseProxy{
		// The client's token travels in the header.
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	listener := httptest.NewUnstartedServer(p)
	listener.Config.ErrorLog = log.New(io.Discard, "", 0) // schedulers are killed in the middle of requests
	// Clients send their token over TLS only.
	listener.StartTLS()
	p.url = listener.URL
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listener.Certificate().Raw})
	e.t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	return p
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
