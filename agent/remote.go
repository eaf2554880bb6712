package agent

import (
	"bufio"
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
	"slices"
	"strings"
	"sync"
	"time"
)

// RemoteConfig is what an agent offers to other hosts: status and pulls over HTTPS, to who shows a token or a client's certificate. There is
// no remote verb that changes anything.
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

const (
	minToken  = 32 // characters: guessing is hopeless
	maxTokens = 1000
)

// SecretError says that a file of secrets is open to others.
type SecretError struct {
	File string
	Why  string
}

func (e *SecretError) Error() string { return fmt.Sprintf("%s: %s", e.File, e.Why) }

type token struct {
	name  string
	scope []string
	sum   [32]byte
}

// readTokens reads a file of lines "NAME SCOPE[,SCOPE] TOKEN"; # begins a comment.
func readTokens(name string) ([]token, error) {
	if err := checkSecret(name); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []token
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		w := strings.Fields(text)
		if len(w) == 0 {
			continue
		}
		bad := func(why string) error { return fmt.Errorf("%s:%d: %s", name, n, why) } // never the token
		if len(w) != 3 {
			return nil, bad("a line is: NAME SCOPE[,SCOPE] TOKEN")
		}
		t := token{name: w[0], scope: strings.Split(w[1], ","), sum: sha256.Sum256([]byte(w[2]))}
		for _, s := range t.scope {
			if !slices.Contains(remoteScope, s) {
				return nil, bad(fmt.Sprintf("scope %q is neither of %s", s, strings.Join(remoteScope, ", ")))
			}
		}
		if len(w[2]) < minToken {
			return nil, bad(fmt.Sprintf("a token has at least %d characters (openssl rand -hex 32)", minToken))
		}
		for _, o := range out {
			if o.name == t.name || o.sum == t.sum {
				return nil, bad("the name or the token stands here twice")
			}
		}
		if out = append(out, t); len(out) > maxTokens {
			return nil, bad(fmt.Sprintf("more than %d tokens", maxTokens))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no token in it", name)
	}
	return out, nil
}

type remote struct {
	cfg    RemoteConfig
	tokens []token
	rate   *rateLimit
}

// caller says who asks: by a token, else by a certificate that was verified.
func (m *remote) caller(r *http.Request) Caller {
	c := Caller{Name: r.RemoteAddr, UID: -1, Rate: m.rate, MaxPull: m.cfg.MaxPull}
	if s, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		sum := sha256.Sum256([]byte(s)) // sums are compared: how long that takes tells nothing of a token
		for _, t := range m.tokens {
			if t.sum == sum {
				c.Name, c.Role, c.Scope = "token "+t.name+" "+r.RemoteAddr, Operator, t.scope
			}
		}
		return c
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Name, c.Role, c.Scope = fmt.Sprintf("certificate %q %s", r.TLS.PeerCertificates[0].Subject.CommonName, r.RemoteAddr), Operator, remoteScope
	}
	return c
}

// ServeRemote offers status and pulls on cfg.Listen until ctx is done. Errors: *SecretError, of files, of the address.
func (a *Agent) ServeRemote(ctx context.Context, cfg RemoteConfig, code func(error) int) error {
	m := &remote{cfg: cfg}
	if cfg.Rate > 0 {
		m.rate = &rateLimit{rate: cfg.Rate}
	}
	tc := &tls.Config{MinVersion: tls.VersionTLS13}
	if cfg.Tokens == "" && cfg.ClientCA == "" {
		return errors.New("remote: neither tokens nor a client CA: nobody could be told from anybody")
	}
	if err := checkSecret(cfg.Key); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
	if err != nil {
		return fmt.Errorf("remote: certificate: %w", err)
	}
	tc.Certificates = []tls.Certificate{pair}
	if cfg.Tokens != "" {
		if m.tokens, err = readTokens(cfg.Tokens); err != nil {
			return err
		}
	}
	if cfg.ClientCA != "" {
		if tc.ClientCAs, err = pool(cfg.ClientCA); err != nil {
			return err
		}
		tc.ClientAuth = tls.RequireAndVerifyClientCert
		if cfg.Tokens != "" {
			tc.ClientAuth = tls.VerifyClientCertIfGiven
		}
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return err
	}
	l = &guests{Listener: l, n: map[string]int{}, key: func(c net.Conn) (string, bool) {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		return host, false
	}}
	srv := &http.Server{
		Handler: a.Handler(nil, code, m.caller), ReadTimeout: apiTimeout, WriteTimeout: apiTimeout, IdleTimeout: apiTimeout,
		ReadHeaderTimeout: apiTimeout / 3, MaxHeaderBytes: maxRequest, ErrorLog: log.New(io.Discard, "", 0), // of handshakes: who scans ports does not fill the log
	}
	a.cfg.Log.Info().Stringer("address", l.Addr()).Msg("status and pulls are offered to other hosts")
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		srv.Close()
	}()
	err = srv.Serve(tls.NewListener(l, tc))
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		<-done
		return nil
	}
	return err
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

// rateLimit spreads bytes over time, for all who share it.
type rateLimit struct {
	rate int64 // bytes a second
	mu   sync.Mutex
	next time.Time
}

// take waits until n more bytes may go.
func (l *rateLimit) take(ctx context.Context, n int) error {
	l.mu.Lock()
	now := time.Now()
	if l.next.Before(now) {
		l.next = now
	}
	at := l.next
	l.next = at.Add(time.Duration(float64(n) / float64(l.rate) * float64(time.Second)))
	l.mu.Unlock()
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// RemoteOptions are how a client shows who it is, and whom it trusts.
type RemoteOptions struct {
	Token     string
	CA        string // PEM file; "": the system's
	Cert, Key string // of the client; "": none
}

// DialRemote makes a client of the agent at an address https://host:port.
func DialRemote(address string, o RemoteOptions) (*Client, error) {
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
		Timeout:       apiTimeout,
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: tc, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("an agent does not redirect") },
	}, sign: func(r *http.Request) {
		if o.Token != "" {
			r.Header.Set("Authorization", "Bearer "+o.Token)
		}
	}}, nil
}
