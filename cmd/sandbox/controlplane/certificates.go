package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of all certificates. They are made anew at every start, so this only
// has to outlast one run.
const validity = 365 * 24 * time.Hour

// clockSkew is how long before now certificates start to be valid, for clocks
// that are set back while the sandbox runs.
const clockSkew = time.Hour

// keyPair names the two PEM files of a certificate.
type keyPair struct {
	certFile, keyFile string
}

// authority is the sandbox's own certificate authority. It signs the serving
// certificates that clients verify and the client certificates that etcd and
// the API server accept.
type authority struct {
	keyPair
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte // the certificate, for kubeconfig files and clients
}

// newAuthority makes an authority whose files lie in dir.
func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate CA key: %w", err)
	}
	template, err := certificateTemplate(pkix.Name{CommonName: "sandbox-ca"})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create CA certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse CA certificate: %w", err)
	}
	ca := &authority{dir: dir, cert: cert, key: key, pem: pemBlock("CERTIFICATE", der)}
	ca.keyPair, err = writeKeyPair(dir, "ca", der, key)
	return ca, err
}

// issue signs a certificate for name, good for serving on 127.0.0.1 and for
// identifying a client; groups become the client's groups in Kubernetes.
func (a *authority) issue(name string, groups ...string) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate key of %s: %w", name, err)
	}
	template, err := certificateTemplate(pkix.Name{CommonName: name, Organization: groups})
	if err != nil {
		return keyPair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), serviceIP}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc"}

	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("create certificate of %s: %w", name, err)
	}
	return writeKeyPair(a.dir, name, der, key)
}

func certificateTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(validity),
	}, nil
}

// newSigningKey writes a private key for ServiceAccount tokens and returns its
// file. Kubernetes derives the public half from it.
func newSigningKey(dir string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("generate ServiceAccount key: %w", err)
	}
	file := filepath.Join(dir, "service-account.key")
	return file, writeKey(file, key)
}

func writeKeyPair(dir, name string, der []byte, key *ecdsa.PrivateKey) (keyPair, error) {
	pair := keyPair{
		certFile: filepath.Join(dir, name+".crt"),
		keyFile:  filepath.Join(dir, name+".key"),
	}
	if err := os.WriteFile(pair.certFile, pemBlock("CERTIFICATE", der), 0o600); err != nil {
		return keyPair{}, fmt.Errorf("write certificate: %w", err)
	}
	return pair, writeKey(pair.keyFile, key)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode private key: %w", err)
	}
	if err := os.WriteFile(file, pemBlock("EC PRIVATE KEY", der), 0o600); err != nil {
		return fmt.Errorf("write private key: %w", err)
	}
	return nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
