package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/ringstore"
)

// badLink says which part of path is a symbolic link that leads to nothing; "": none.
func badLink(path string) string {
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if to, err := os.Readlink(p); err == nil {
			switch _, err := os.Stat(p); {
			case errors.Is(err, syscall.ELOOP):
				return fmt.Sprintf("%s is a symbolic link that leads back to itself", p)
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Sprintf("%s is a symbolic link to %s, which does not exist", p, to)
			}
		}
		if p == filepath.Dir(p) {
			return ""
		}
	}
}

// onDisk describes one ring folder: NAME-PID-START.
func onDisk(dir string) (session.Status, bool) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	ring, _ := ringstore.LookInto(abs)
	files := ring.Files
	if len(files)+len(ring.Foreign) == 0 {
		return session.Status{}, false
	}
	s := session.Status{ID: filepath.Base(abs), Dir: abs, Phase: session.Stopped, GuaranteeMet: true, Files: len(files)}
	s.Session, s.ForeignFiles = ring.Session, len(ring.Foreign)
	s.Name, s.PID = splitID(s.ID)
	s.Resource = ringstore.ReadResource(ringstore.OS, abs)
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			s.TraceBytes += st.Size()
			if s.Since.IsZero() {
				s.Since = st.ModTime()
			}
		}
	}
	for i := len(files) - 1; i >= 0; i-- { // frame headers are enough
		f, err := ringstore.OpenFile(files[i])
		if err != nil {
			continue
		}
		for h, err := range f.Headers() {
			if err == nil {
				s.LastGC = max(s.LastGC, h.LastGC)
			}
		}
		f.Close()
		if s.LastGC > 0 {
			break
		}
	}
	s.Collections = s.LastGC
	s.DroppedUnknown = !session.Counted(ringstore.ReadCounters(ringstore.OS, abs), &s)
	return s, true
}
