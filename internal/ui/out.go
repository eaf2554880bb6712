package ui

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// Stdout and Stderr take text. What may not reach a terminal is escaped in it, whoever wrote it.
var (
	Stdout io.Writer = stdout
	Stderr io.Writer = stderr

	stdout = &Guard{to: func() io.Writer { return os.Stdout }, colour: func() bool { return colours(os.Stdout) }}
	stderr = &Guard{to: func() io.Writer { return os.Stderr }, colour: func() bool { return colours(os.Stderr) }}
)

// RawStdout takes bytes that are no text for people: recordings, profiles, what a command below heapcam writes.
// RawStdin and RawStderr are for such a command. Terminals are recognized by these, too.
func RawStdin() *os.File  { return os.Stdin }
func RawStdout() *os.File { return os.Stdout }
func RawStderr() *os.File { return os.Stderr }

// Flush writes what Stdout and Stderr hold back: at most a piece of a character each.
func Flush() {
	stdout.Flush()
	stderr.Flush()
}

// Written gives the first error of Stdout since the last call: what was printed is incomplete. That its reader has
// left is none.
func Written() error {
	stdout.mu.Lock()
	defer stdout.mu.Unlock()
	err := stdout.failed
	stdout.failed = nil
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// Guard escapes hidden characters, but newline and tab, in what passes through it. It is safe for use by several
// goroutines.
type Guard struct {
	to     func() io.Writer
	colour func() bool // nil: never
	mu     sync.Mutex
	held   []byte // the beginning of a character
	failed error  // the first one
}

// NewGuard guards w.
func NewGuard(w io.Writer) *Guard { return &Guard{to: func() io.Writer { return w }} }

func (g *Guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := p
	if len(g.held) > 0 {
		in = append(g.held, p...)
	}
	out, rest := guarded(in)
	g.held = append([]byte(nil), rest...)
	if len(out) > 0 {
		if _, err := g.to().Write(out); err != nil {
			if g.failed == nil {
				g.failed = err
			}
			return 0, err
		}
	}
	return len(p), nil
}

// Flush writes what is held back, as escapes.
func (g *Guard) Flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.held {
		Fprintf(g.to(), "%s", string([]byte{b}))
	}
	g.held = nil
}

// ClearScreen empties the terminal at stdout.
func ClearScreen() { io.WriteString(os.Stdout, "\x1b[H\x1b[2J") }
