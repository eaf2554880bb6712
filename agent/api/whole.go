package api

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/heapcam/heapcam/ringstore"
)

// pullSilent is how long an agent may send nothing of a pull. It may have to wait for its rate limit.
const pullSilent = time.Minute

// whole checks what is written to it: that it is a container with its table of contents, which comes last. HTTP says
// only that a body has ended, and other servers answer too.
type whole struct {
	pw   *io.PipeWriter
	done chan error
}

func newWhole() *whole {
	pr, pw := io.Pipe()
	c := &whole{pw, make(chan error, 1)}
	go func() {
		err := readContainer(pr)
		pr.CloseWithError(err) // the rest need not come
		c.done <- err
	}()
	return c
}

// readContainer reads all of r.
func readContainer(r io.Reader) error {
	t, last := tar.NewReader(r), ""
	for {
		h, err := t.Next()
		switch {
		case err == nil:
			last = path.Base(h.Name)
		case err == io.EOF && last == ringstore.ManifestName:
			_, err = io.Copy(io.Discard, r)
			return err
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("it was cut off, or is no recording: its table of contents is missing")
		default:
			return fmt.Errorf("it is no recording: %w", err)
		}
	}
}

func (c *whole) Write(p []byte) (int, error) { return c.pw.Write(p) }

// end gives the verdict.
func (c *whole) end() error {
	_ = c.pw.Close()
	return <-c.done
}

// watched lets the timer run while a Read takes, and begins it anew for each.
type watched struct {
	r     io.Reader
	timer *time.Timer
	limit time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.limit)
	defer w.timer.Stop() // the time that the writer takes does not count
	return w.r.Read(p)
}
