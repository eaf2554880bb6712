// Package apitest has what tests of the API need: callers of other users, and certificates.
//
// What it does not do: it makes no server and no agent.
package apitest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority certifies hosts and clients of one test.
type Authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that writes its files into dir, its own certificate as NAME.pem.
func NewAuthority(t *testing.T, dir, name string) *Authority {
	a := &Authority{t: t, dir: dir}
	a.cert, a.key = a.Issue(name, nil)
	return a
}

// Issue writes NAME.pem and NAME.key.
func (a *Authority) Issue(name string, usage []x509.ExtKeyUsage) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	n, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	tmpl := &x509.Certificate{SerialNumber: n, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: usage, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	parent, signer := a.cert, a.key
	if parent == nil {
		tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	kb, err := x509.MarshalECPrivateKey(key)
	if err == nil {
		err = errors.Join(os.WriteFile(a.File(name+".pem"),
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
			os.WriteFile(a.File(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kb}), 0o600))
	}
	if err != nil {
		a.t.Fatal(err)
	}
	cert, _ := x509.ParseCertificate(der)
	return cert, key
}

// File returns the path of a file that Issue has written.
func (a *Authority) File(name string) string { return filepath.Join(a.dir, name) }

// FreeAddress returns an address of this host that nobody listens on.
func FreeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
