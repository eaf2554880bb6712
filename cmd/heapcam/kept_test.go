//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/internal/ui"
)

// answers gives what verbs print of a listing, and whether its graph was kept.
func answers(t *testing.T, c *graphCache) (text string, h *retention.Heap) {
	t.Helper()
	rec, err := openReading(c.path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	of := &listingSources{rec: rec}
	defer of.close()
	if h, err = retention.Load(of.sources(), 1<<64-1, retention.Options{Kept: c}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	h.Holders(h.OfClass("app.Order"), "orders").WriteText(&b)
	h.Paths(h.All(), "all", "").WriteText(&b, 0)
	for _, by := range retention.Bys {
		if by != retention.BySite {
			if err := ui.JSON(&b, h.Dominators(by, 100, nil)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := ui.JSON(&b, h.Loaders()); err != nil {
		t.Fatal(err)
	}
	return b.String(), h
}

func aged(t *testing.T, dir string, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chtimes(name, at, at)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeptGraph: verbs answer from a kept graph as they did before. Whatever is wrong with it, they make another one.
func TestKeptGraph(t *testing.T) {
	dir, _, _ := shop(t, "")
	aged(t, dir, time.Hour)
	folder := filepath.Join(t.TempDir(), "index")
	c := &graphCache{readIndex{folder, "1.0"}, dir, graphLimits{0, 1 << 20, 10}}
	want := ""
	ask := func(c *graphCache, what string, kept bool) {
		t.Helper()
		got, h := answers(t, c)
		if want == "" {
			want = got
		}
		if got != want || h.Kept != kept {
			t.Errorf("%s: kept %v, want %v; got %.200s\nwant %.200s", what, h.Kept, kept, got, want)
		}
		c.Keep(h)
	}
	files := func(pattern string) []string {
		all, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	ask(c, "the first time", false)
	ask(c, "the second", true)
	ask(&graphCache{readIndex{folder, "1.1"}, dir, c.limits}, "another program", false)
	aged(t, dir, 2*time.Hour)
	ask(c, "a file of another time", false)
	ask(c, "again", true)
	for _, f := range files("*") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2]++
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask(c, "damage", false)
	ask(c, "after damage", true)
	aged(t, dir, 0)
	ask(c, "a recording that grows", false)
	ask(c, "a recording that grows, again", false)
	aged(t, dir, 3*time.Hour)
	ask(&graphCache{readIndex{filepath.Join(folder, "x\x00"), "1"}, dir, c.limits}, "no folder", false)
	for _, l := range []graphLimits{{least: 1 << 20, all: 1 << 30, free: 10}, {all: 1000, free: 10},
		{all: 1 << 30, free: 1 << 60}} {
		limited := &graphCache{readIndex{folder, "limits"}, dir, l}
		ask(limited, "limits", false)
		ask(limited, "limits", false)
	}
}

// TestKeptGraphs: all graphs together have a limit, and the least recently used ones make room.
func TestKeptGraphs(t *testing.T) {
	folder := t.TempDir()
	c := &graphCache{readIndex{folder, "1"}, "", graphLimits{0, 250, 10}}
	for i, name := range []string{"a.graph1", "b.graph2", "c.graph3", "d.report.json", graphTemp + "1"} {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	young := filepath.Join(folder, graphTemp+"2")
	if err := os.WriteFile(young, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.sweepGraphs()
	for name, want := range map[string]bool{"a.graph1": false, "b.graph2": true, "c.graph3": true,
		"d.report.json": true, graphTemp + "1": false, graphTemp + "2": true} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCacheTraps: a pipe, a device or a folder in place of a file of the cache is as none, and the name of the cache's
// folder is no pattern: what matches it elsewhere is left alone, and limits hold in it.
func TestCacheTraps(t *testing.T) {
	dir, _, _ := shop(t, "")
	aged(t, dir, time.Hour)
	base := t.TempDir()
	c := &graphCache{readIndex{filepath.Join(base, "index[1"), "1.0"}, dir, graphLimits{0, 1 << 20, 10}}
	_, h := answers(t, c)
	c.Keep(h)
	kept := c.files(graphFiles)
	if len(kept) != 1 {
		t.Fatal(kept)
	}
	for what, put := range map[string]func(name string) error{
		"pipe":   func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"folder": func(name string) error { return os.Mkdir(name, 0o700) },
		"device": func(name string) error { return os.Symlink("/dev/zero", name) },
	} {
		if err := errors.Join(os.Remove(kept[0]), put(kept[0])); err != nil {
			t.Fatal(err)
		}
		if _, h := answers(t, c); h.Kept {
			t.Errorf("a %s is a graph", what)
		}
		report := filepath.Join(c.dir, what)
		if err := put(report); err != nil {
			t.Fatal(err)
		}
		if readIndexed(report, func([]byte) error { return nil }) {
			t.Errorf("a %s is a report", what)
		}
	}
	other := filepath.Join(base, "a")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	x := readIndex{filepath.Join(base, "[ab]"), "1.0"}
	for _, in := range []string{other, x.dir} {
		for i := range keepIndexed + 3 {
			name := filepath.Join(in, fmt.Sprintf("%d.report.json", i))
			if err := errors.Join(os.MkdirAll(in, 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	x.sweep()
	own, theirs := len(x.files("*")), len(readIndex{other, ""}.files("*"))
	if own != keepIndexed || theirs != keepIndexed+3 {
		t.Errorf("%d of %d files are left, and %d of another folder's %d", own, keepIndexed+3, theirs, keepIndexed+3)
	}
}
