package metrics

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// safeBuffer is a buffer that several goroutines may use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}
func (s *safeBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// TestServeIsBounded: who opens many connections has most of them closed, and what net/http reports is logged.
func TestServeIsBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	out, done := &safeBuffer{}, make(chan error, 1)
	log := zerolog.New(out)
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("defect") })
	go func() { done <- Serve(ctx, l, h, &log) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	if _, err := http.Get("http://" + l.Addr().String()); err == nil {
		t.Error("a panic was answered")
	}
	if s := out.String(); !strings.Contains(s, "defect") || !strings.Contains(s, "metrics-trouble") {
		t.Errorf("logged %q", s)
	}
	closed := 0
	for range 40 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			closed++
		}
	}
	if closed < 30 {
		t.Errorf("%d of 40 connections of one address were closed", closed)
	}
}
