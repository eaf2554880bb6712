package api

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/heapcam/heapcam/agent/logs"
)

// RemoteConfig is what an agent offers to other hosts: status and pulls over HTTPS, to who shows a token or a client's
// certificate. There is no remote verb that changes anything.
type RemoteConfig struct {
	Listen    string // host:port
	Cert, Key string // of the server, PEM files
	ClientCA  string // PEM: who has a certificate of it may see and pull; "": certificates are not asked for
	Tokens    string // file: name, scopes and token in each line; "": there are none
	Rate      int64  // bytes a second that all pulls may take; 0: any
	MaxPull   int64  // bytes of one pull, whole files, newest; 0: any
}

// remoteScope is all that may be had from afar.
var remoteScope = []string{"status", "pull"}

type remote struct {
	cfg    RemoteConfig
	tokens []token
	rate   *rate.Limiter
}

// caller says who asks: by a token, else by a certificate that was verified.
func (m *remote) caller(r *http.Request) Caller {
	c := Caller{Name: r.RemoteAddr, UID: -1, Rate: m.rate, MaxPull: m.cfg.MaxPull}
	if s, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		sum := sha256.Sum256([]byte(s)) // sums are compared: the time that takes reveals nothing of a token
		for _, t := range m.tokens {
			if t.sum == sum {
				c.Name, c.Role, c.Scope = "token "+t.name+" "+r.RemoteAddr, Operator, t.scope
			}
		}
		return c
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Name = fmt.Sprintf("certificate %q %s", r.TLS.PeerCertificates[0].Subject.CommonName, r.RemoteAddr)
		c.Role, c.Scope = Operator, remoteScope
	}
	return c
}

// ServeRemote offers status and pulls on cfg.Listen until ctx is done. Errors: *SecretError, of files, of the address.
func (s *Server) ServeRemote(ctx context.Context, cfg RemoteConfig) error {
	m := &remote{cfg: cfg}
	if cfg.Rate > 0 {
		m.rate = rate.NewLimiter(rate.Limit(cfg.Rate), pullPiece)
	}
	tc, err := m.tls()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return err
	}
	l = LimitConnections(l)
	srv := &http.Server{
		Handler:     s.Handler(nil, m.caller),
		ReadTimeout: apiTimeout, WriteTimeout: apiTimeout, IdleTimeout: apiTimeout,
		ReadHeaderTimeout: apiTimeout / 3, MaxHeaderBytes: maxRequest,
		ErrorLog: log.New(io.Discard, "", 0), // of handshakes: who scans ports does not fill the log
	}
	logs.Write(&s.cfg.Log, logs.RemoteReady, logs.Address.Of(l.Addr()))
	return serve(ctx, srv, tls.NewListener(l, tc))
}

// tls reads certificates and tokens. There is no TLS without a way to know who calls.
func (m *remote) tls() (*tls.Config, error) {
	cfg, tc := &m.cfg, &tls.Config{MinVersion: tls.VersionTLS13}
	if cfg.Tokens == "" && cfg.ClientCA == "" {
		return nil, errors.New("remote access needs --remote-tokens or --remote-client-ca, or both: without them the " +
			"agent cannot identify callers")
	}
	if err := CheckSecret(cfg.Key); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("remote: certificate: %w", err)
	}
	tc.Certificates = []tls.Certificate{pair}
	if cfg.Tokens != "" {
		if m.tokens, err = readTokens(cfg.Tokens); err != nil {
			return nil, err
		}
	}
	if cfg.ClientCA != "" {
		if tc.ClientCAs, err = pool(cfg.ClientCA); err != nil {
			return nil, err
		}
		tc.ClientAuth = tls.RequireAndVerifyClientCert
		if cfg.Tokens != "" {
			tc.ClientAuth = tls.VerifyClientCertIfGiven
		}
	}
	return tc, nil
}

func pool(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s: no certificate in it", file)
	}
	return p, nil
}

// RemoteOptions are how a client shows who it is, and whom it trusts.
type RemoteOptions struct {
	Token     string
	CA        string // PEM file; "": the system's
	Cert, Key string // of the client; "": none
}

// connectTimeout bounds how long a client waits for a connection, and again for TLS.
const connectTimeout = 10 * time.Second

// DialRemote makes a client of the agent at an address https://host:port.
func DialRemote(address string, o RemoteOptions) (*Client, error) {
	if i := strings.LastIndexByte(address, '@'); i >= 0 { // never repeat a password, which may hold any character
		return nil, fmt.Errorf("the address of %q must be https://HOST:PORT, without user and password: an agent "+
			"takes a token or a client certificate", address[i+1:])
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("%q is not https://HOST:PORT", address)
	}
	tc := &tls.Config{MinVersion: tls.VersionTLS13}
	if o.CA != "" {
		if tc.RootCAs, err = pool(o.CA); err != nil {
			return nil, err
		}
	}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, err
		}
		tc.Certificates = []tls.Certificate{pair}
	}
	return &Client{base: "https://" + u.Host, http: &http.Client{
		Timeout: apiTimeout,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: tc, Proxy: http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: connectTimeout}).DialContext, TLSHandshakeTimeout: connectTimeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("an agent does not redirect") },
	}, sign: func(r *http.Request) {
		if o.Token != "" {
			r.Header.Set("Authorization", "Bearer "+o.Token)
		}
	}}, nil
}
