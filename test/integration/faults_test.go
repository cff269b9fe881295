package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/device-scheduler/device-scheduler/test/integration/harness"
)

// write is one of the requests by which the scheduler binds a pod.
type write struct {
	method string
	// collection is the plural of the kind; subresource may be empty.
	collection, subresource string
}

var (
	createClaim    = write{method: http.MethodPost, collection: "resourceclaims"}
	writeFinalizer = write{method: http.MethodPut, collection: "resourceclaims"}
	writeStatus    = write{method: http.MethodPut, collection: "resourceclaims", subresource: "status"}
	patchPod       = write{method: http.MethodPatch, collection: "pods", subresource: "status"}
	bindPod        = write{method: http.MethodPost, collection: "pods", subresource: "binding"}
)

// of tells whether a request is such a write, for the object of the given name
// in the test's namespace; an empty name means any.
func (w write) of(e *harness.Env, name string, r *http.Request) bool {
	_, path, found := strings.Cut(r.URL.Path, "/namespaces/"+e.Namespace+"/")
	parts := strings.Split(path, "/")
	if !found || r.Method != w.method || parts[0] != w.collection {
		return false
	}
	if w.method == http.MethodPost && w.subresource == "" {
		return len(parts) == 1
	}
	if len(parts) < 2 || name != "" && parts[1] != name {
		return false
	}
	return len(parts) == 2 && w.subresource == "" || len(parts) == 3 && parts[2] == w.subresource
}

// answer is what an API server says that fails.
func answer(w http.ResponseWriter, code int) {
	if code == 0 {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	reason := map[int]string{
		http.StatusConflict: "Conflict", http.StatusInternalServerError: "InternalError", http.StatusGatewayTimeout: "Timeout",
	}[code]
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected by the test","reason":%q,"code":%d}`, reason, code)
}

// lose lets the first n matching requests have their effect and answers them
// with a failure; code 0 is no answer at all. It returns the number of requests
// that it has seen.
func lose(n int64, code int, matches func(*http.Request) bool) (harness.Interceptor, *atomic.Int64) {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if !matches(r) || seen.Add(1) > n {
			return false
		}
		forward.ServeHTTP(httptest.NewRecorder(), r)
		answer(w, code)
		return true
	}, &seen
}

// refuse answers matching requests with a failure and passes none on.
func refuse(code int, matches func(*http.Request) bool) (harness.Interceptor, *atomic.Int64) {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !matches(r) {
			return false
		}
		seen.Add(1)
		answer(w, code)
		return true
	}, &seen
}

// once runs an action at the first matching request: before it has its effect,
// or after that and before the answer.
func once(after bool, matches func(*http.Request) bool, action func()) harness.Interceptor {
	var done atomic.Bool
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if !matches(r) || !done.CompareAndSwap(false, true) {
			return false
		}
		if !after {
			action()
			return false
		}
		recorded := httptest.NewRecorder()
		forward.ServeHTTP(recorded, r)
		action()
		for key, values := range recorded.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(recorded.Body.Bytes()) // the client may be gone by now
		return true
	}
}
