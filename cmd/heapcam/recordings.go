package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

func storeTooNew(err error) bool {
	var e *ringstore.TooNewError
	return errors.As(err, &e)
}

func storeDamaged(err error) bool {
	var e *ringstore.DamageError
	return errors.As(err, &e)
}

func storeNotFound(error) bool { return false }

// recordings lists the ring folders below dirs, newest last.
func recordings(dirs []string) ([]agent.Status, error) {
	var out []agent.Status
	type aged struct {
		s  agent.Status
		at int64
	}
	var all []aged
	for _, d := range dirs {
		es, err := os.ReadDir(d)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range es {
			dir := filepath.Join(d, e.Name())
			b, err := os.ReadFile(filepath.Join(dir, "recording.json"))
			if err != nil {
				continue
			}
			var m struct {
				Session    string `json:"session"`
				Name       string `json:"name"`
				PID        int    `json:"pid"`
				StartTicks uint64 `json:"start_ticks"`
				VM         string `json:"vm"`
				Probe      string `json:"probe"`
			}
			if json.Unmarshal(b, &m) != nil {
				continue
			}
			s := agent.Status{ID: e.Name(), Name: m.Name, PID: m.PID, StartTicks: m.StartTicks, Session: m.Session, VM: m.VM, Probe: m.Probe, Dir: dir}
			at := int64(0)
			fs, _ := filepath.Glob(filepath.Join(dir, "*.hcr"))
			for _, f := range fs {
				if st, err := os.Stat(f); err == nil {
					s.TraceBytes += st.Size()
					s.Files++
					at = max(at, st.ModTime().UnixNano())
				}
			}
			all = append(all, aged{s, at})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].at < all[j].at })
	for _, a := range all {
		out = append(out, a.s)
	}
	return out, nil
}

// findRecording resolves a reference (pid, id prefix, name; "" if there is only one) to a ring folder.
func findRecording(dirs []string, ref string) (string, error) {
	if st, err := os.Stat(ref); ref != "" && err == nil && st.IsDir() {
		return ref, nil
	}
	all, err := recordings(dirs)
	if err != nil {
		return "", err
	}
	var hits []agent.Status
	for _, s := range all {
		if ref == "" || s.Name == ref || s.ID == ref || strings.HasPrefix(s.ID, ref) || strconv.Itoa(s.PID) == ref {
			hits = append(hits, s)
		}
	}
	switch {
	case len(hits) == 1:
		return hits[0].Dir, nil
	case len(hits) == 0 && ref == "":
		return "", withCode(exitNotFound, "no recording in %s: name the folder with --out", strings.Join(dirs, ", "))
	case len(hits) == 0:
		return "", withCode(exitNotFound, "no recording of %q in %s", ref, strings.Join(dirs, ", "))
	}
	var ids []string
	for _, h := range hits {
		ids = append(ids, "  "+h.ID)
	}
	return "", usage("several recordings match; name one of:\n%s", strings.Join(ids, "\n"))
}

// blocks makes one source of the files of a recording, in order.
type blocks struct {
	files []*ringstore.File
	next  func() (trace.Block, error, bool)
	stop  func()
}

func (b *blocks) Next() (trace.Block, error) {
	for {
		if b.next == nil {
			if len(b.files) == 0 {
				return trace.Block{}, io.EOF
			}
			b.next, b.stop = pull2(b.files[0])
			b.files = b.files[1:]
		}
		x, err, ok := b.next()
		if ok {
			return x, err
		}
		b.stop()
		b.next = nil
	}
}

func openReplay(path string) (*heap.Replayer, *ringstore.Recording, error) {
	rec, err := ringstore.OpenRecording(path)
	if err != nil {
		return nil, nil, err
	}
	r := heap.NewReplayer(&blocks{files: rec.Files})
	r.Damage = append(r.Damage, rec.Problems...)
	return r, rec, nil
}
