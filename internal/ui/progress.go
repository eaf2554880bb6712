package ui

import (
	"io"
	"os"
	"time"
)

// Progress shows on the terminal at stderr how far something is, if it takes longer than a second.
type Progress struct {
	what        string
	start, last time.Time
	shown       bool
}

// NewProgress begins to measure; what names what is done.
func NewProgress(what string) *Progress { return &Progress{what: what, start: time.Now()} }

// At says how many bytes of how many are done.
func (p *Progress) At(done, total int64) {
	now := time.Now()
	spent := now.Sub(p.start)
	if spent < time.Second || now.Sub(p.last) < 200*time.Millisecond || total <= 0 || !IsTerminal(os.Stderr) {
		return
	}
	p.last, p.shown = now, true
	rate := int64(float64(done) / spent.Seconds())
	Fprintf(os.Stderr, "\rheapcam: %s: %d%% of %s, %s/s ", p.what, 100*done/total, Bytes(total), Bytes(rate))
}

// Step says what is done now, where bytes do not tell how far it is.
func (p *Progress) Step(what string) {
	if p.Spent() < time.Second || !IsTerminal(os.Stderr) {
		return
	}
	p.shown = true
	Fprintf(os.Stderr, "\r\x1b[Kheapcam: %s: %s ", p.what, what)
}

// ClearProgress removes the line of any Progress that was left before its end.
func ClearProgress() {
	if IsTerminal(os.Stderr) {
		io.WriteString(os.Stderr, "\r\x1b[K")
	}
}

// Done removes the line.
func (p *Progress) Done() {
	if p.shown {
		io.WriteString(os.Stderr, "\r\x1b[K")
	}
}

// Spent is the time since the beginning.
func (p *Progress) Spent() time.Duration { return time.Since(p.start) }

// IsTerminal says that f is a terminal, or another device that takes characters.
func IsTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
