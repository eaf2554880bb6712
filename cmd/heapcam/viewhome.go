package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/web"
)

// lister lists the recordings of the first page of the viewer: those of the agent, and those in folders.
type lister struct {
	o    *viewOptions
	dirs []string
	most bool // the agent is asked too

	mu    sync.Mutex
	known map[string]listed // by folder or file
}

// listed is what was read of a recording, which is valid while it has not changed.
type listed struct {
	stamp string
	s     session.Status
}

// home makes the configuration of the first page; dir "" means all folders, and the agent.
func (o *viewOptions) home(dir string) web.HomeConfig {
	l := &lister{o: o, dirs: outDirs(o.out), most: o.out == "", known: map[string]listed{}}
	if dir != "" {
		l.dirs, l.most = []string{dir}, false
	}
	return web.HomeConfig{
		Where: strings.Join(l.dirs, ", "),
		List:  l.list,
		Open: func(ctx context.Context, e web.Entry) (*web.Config, error) {
			cfg, err := o.config(ctx, e.Dir)
			if err == nil {
				cfg.Title = e.Name
				cfg.Idle = collectGarbage()
			}
			return cfg, err
		},
		About: func(e web.Entry) (web.About, error) { return aboutRecording(e.Dir) },
	}
}

// list gives all recordings.
func (l *lister) list(ctx context.Context) (out []web.Entry, problem string, err error) {
	var now api.StatusReply
	asked := false
	if cl, err := dialAgent(l.o.socket); err == nil {
		ctx, stop := context.WithTimeout(ctx, diskWait)
		now, err = cl.Status(ctx)
		stop()
		if asked = err == nil; !asked {
			problem = fmt.Sprintf("The agent did not answer: %v.", err)
		}
	} else if l.most {
		problem = fmt.Sprintf("No agent was asked: %v.", err)
	}
	seen := map[string]bool{}
	byDir := map[string]*session.Status{}
	for i := range now.JVMs {
		s := &now.JVMs[i]
		byDir[s.Dir] = s
		if l.most && s.Dir != "" && s.Phase != session.Refused {
			out = append(out, entryOf(s, "JVM"))
			seen[s.Dir] = true
		}
	}
	for _, d := range l.dirs {
		found, err := l.below(d, byDir, seen, "JVM")
		if err != nil && !os.IsNotExist(err) && len(l.dirs) == 1 {
			return nil, "", err
		}
		out = append(out, found...)
		found, _ = l.below(filepath.Join(d, agent.IncidentsName), byDir, seen, "incident")
		out = append(out, found...)
	}
	return out, problem, nil
}

// below lists the ring folders and pulled files in a folder.
func (l *lister) below(
	dir string,
	now map[string]*session.Status,
	seen map[string]bool,
	kind string,
) (out []web.Entry, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		path, err := filepath.Abs(filepath.Join(dir, e.Name()))
		if err != nil || seen[path] {
			continue
		}
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), uploaded) {
			if st, err := e.Info(); err == nil {
				out = append(out, web.Entry{ID: entryID(path), Name: e.Name(), Kind: "file", Dir: path, State: "file",
					Since: st.ModTime(), Bytes: st.Size()})
				seen[path] = true
			}
			continue
		}
		if !e.IsDir() || e.Name() == agent.IncidentsName {
			continue
		}
		s, ok := l.look(path)
		if !ok {
			continue
		}
		seen[path] = true
		if live := now[path]; live != nil {
			s = *live
		}
		out = append(out, entryOf(&s, kind))
	}
	return out, err
}

// look describes a ring folder, from what was read before if it has not changed.
func (l *lister) look(dir string) (session.Status, bool) {
	st, err := os.Stat(dir)
	if err != nil {
		return session.Status{}, false
	}
	version, over := folderVersion(dir)
	stamp := fmt.Sprint(st.ModTime().UnixNano(), " ", version)
	l.mu.Lock()
	old, ok := l.known[dir]
	l.mu.Unlock()
	if ok && old.stamp == stamp && old.s.Phase == phaseOf(over) {
		return old.s, true
	}
	s, ok := onDisk(dir)
	if !ok {
		return s, false
	}
	s.Phase = phaseOf(over)
	l.mu.Lock()
	l.known[dir] = listed{stamp, s}
	l.mu.Unlock()
	return s, true
}

// phaseOf guesses from the files of a ring whether somebody writes it.
func phaseOf(over bool) session.Phase {
	if over {
		return session.Stopped
	}
	return session.Recording
}

func entryID(path string) string {
	h := sha256.Sum256([]byte(path))
	return hex.EncodeToString(h[:8])
}

func entryOf(s *session.Status, kind string) web.Entry {
	e := web.Entry{ID: entryID(s.Dir), Name: s.Name, Kind: kind, Dir: s.Dir, PID: s.PID, Service: s.Resource.Service(),
		Version: s.Resource[trace.AttrVersion], User: s.Resource[trace.AttrOwner], State: string(s.Phase),
		Live: !s.Phase.Over() && kind == "JVM", VM: s.VM, Since: s.Since, GCs: s.Collections, Bytes: s.TraceBytes}
	if kind == "incident" {
		e.Name, e.State = s.ID, "incident"
	}
	for _, k := range []string{trace.AttrUnit, trace.AttrPod, trace.AttrContainer} {
		if v := s.Resource[k]; v != "" {
			if e.Where = v; k == trace.AttrContainer {
				e.Where = v[:min(len(v), 12)]
			}
			break
		}
	}
	return e
}

// aboutRecording reads the first block that describes the JVM.
func aboutRecording(path string) (a web.About, err error) {
	rec, err := openStored(path)
	if err != nil {
		return a, err
	}
	defer rec.Close()
	for i := len(rec.Files) - 1; i >= 0; i-- {
		for b, err := range rec.Files[i].Blocks() {
			if err != nil || b.Kind != trace.KindMeta {
				break
			}
			if m, err := trace.DecodeMeta(b); err == nil && m.HasJVM {
				a.VM, a.MaxHeap = m.JVM.VM, m.JVM.MaxHeap
				a.Collector = analysis.CollectorName(m.JVM.Collector)
				return a, nil
			}
		}
	}
	return a, nil
}

// settler gives the function that settles a JVM.
func (o *viewOptions) settler(id string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		cl, err := dialAgent(o.socket)
		if err != nil {
			return "", err
		}
		r, err := cl.Settle(ctx, api.ReferencesRequest{ID: id, Most: int64(defaultReferencePause)})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("heapcam found out which of %s live. The JVM stopped for %s.",
			ui.Plural(r.Objects, "object"), ui.Nanoseconds(r.StopNS)), nil
	}
}

// severalBelow says whether path is a folder of recordings, not one.
func severalBelow(path string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		return false
	}
	if _, ok := onDisk(path); ok {
		return false
	}
	entries, err := os.ReadDir(path)
	n := 0
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), uploaded) ||
			e.IsDir() && len(ringFiles(filepath.Join(path, e.Name()))) > 0 {
			n++
		}
	}
	return err == nil && n > 1
}
