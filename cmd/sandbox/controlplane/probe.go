package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// newProbeClient returns an HTTP client that trusts the sandbox's authority and
// identifies itself with the given certificate. It opens a connection per
// request: a kept one would hide that the component behind it was replaced.
func newProbeClient(ca *authority, identity keyPair) (*http.Client, error) {
	certificate, err := tls.LoadX509KeyPair(identity.certFile, identity.keyFile)
	if err != nil {
		return nil, fmt.Errorf("load client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
		DisableKeepAlives: true,
	}}, nil
}

// probeURL returns a probe that wants status 200 from the address.
func probeURL(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		// The bodies of health endpoints name the checks that failed.
		body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		if err != nil {
			return err
		}
		return fmt.Errorf("%s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
}
