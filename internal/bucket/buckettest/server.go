// Package buckettest starts a real S3 server, versitygw, for tests.
package buckettest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Version is that of the server: go install github.com/versity/versitygw/cmd/versitygw@Version.
const Version = "v1.8.0"

// Server is a server on loopback with one bucket.
type Server struct {
	URL, Bucket, Key, Secret string
	Dir                      string // a folder for each bucket, a file for each object

	t       *testing.T
	program string
	port    string
	c       *exec.Cmd
}

// Program finds versitygw: in PATH, or where tools/setup installs it.
func Program() string {
	if p, err := exec.LookPath("versitygw"); err == nil {
		return p
	}
	cache, _ := os.UserCacheDir()
	p := filepath.Join(cache, "heapcam-tools", "versitygw")
	if _, err := os.Stat(p); err == nil {
		return p
	}
	return ""
}

// Start starts a server that ends with the test. Without versitygw the test is skipped.
func Start(t *testing.T) *Server {
	t.Helper()
	program := Program()
	if program == "" {
		t.Skip("not run: buckets of a real S3 server (no versitygw; make test-full installs it)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	s := &Server{URL: "http://127.0.0.1:" + port, Bucket: "incidents", Key: "heapcam", Secret: "a-secret-of-a-test",
		Dir: t.TempDir(), t: t, program: program, port: port}
	if err := os.Mkdir(filepath.Join(s.Dir, s.Bucket), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// Running says whether the server has not been killed.
func (s *Server) Running() bool { return s.c != nil }

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.c != nil {
		_ = s.c.Process.Kill()
		_ = s.c.Wait()
		s.c = nil
	}
}

// Restart starts it again, on the same folder and port.
func (s *Server) Restart() {
	s.t.Helper()
	s.c = exec.Command(s.program, "--port", "127.0.0.1:"+s.port, "posix", s.Dir)
	s.c.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s.Key, "ROOT_SECRET_KEY="+s.Secret)
	if err := s.c.Start(); err != nil {
		s.c = nil
		s.t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			s.t.Fatal(fmt.Errorf("versitygw does not start: %w", err))
		}
	}
}
