package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// graphCache keeps graphs of one recording in the folder of the index. They take 30 to 50 bytes an object, so they have
// limits of their own.
type graphCache struct {
	readIndex
	path   string // of the recording
	limits graphLimits
}

// graphLimits are sizes in bytes.
type graphLimits struct {
	least int64 // a smaller graph is not kept: it is made as soon as it is read
	all   int64 // of all graphs of the folder; one may have half of it
	free  int64 // a graph must not take more than this part of the free space of the disk: 10 is a tenth
}

var keptGraphs = graphLimits{least: 4 << 20, all: 1 << 30, free: 10}

const (
	graphFiles = "*.graph*"
	graphTemp  = "new-graph-"
	// graphTempAge is how old a file must be that was never finished.
	graphTempAge = time.Hour
)

func newGraphCache(path string) *graphCache { return &graphCache{ownIndex(), path, keptGraphs} }

func (c *graphCache) file(listing uint64) (string, bool) {
	key, ok := c.key(c.path)
	return filepath.Join(c.dir, fmt.Sprintf("%s.graph%d", key, listing)), ok
}

// Get gives the graph of a listing of so many objects, nil if it cannot. A file that is damaged is removed.
func (c *graphCache) Get(r *room.Room, listing, objects uint64) *graph.Graph {
	name, ok := c.file(listing)
	if !ok {
		return nil
	}
	f, st, err := openRegular(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st.Size() > c.limits.all {
		return nil
	}
	g, err := graph.Read(r, f, st.Size())
	if errors.Is(err, graph.ErrKept) || err == nil && uint64(g.Objects()) != objects {
		_ = os.Remove(name)
		return nil
	}
	if err != nil {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(name, now, now) // sweep removes the least recently used
	return g
}

// roomForGraph gives a file of the cache folder for the arrays of a graph that is larger than the memory that is left.
// nil: memory, because there is enough, or no file of that size can be made. The file is gone when this process ends.
func roomForGraph(objects, slots uint64) *room.Room {
	left := room.Left()
	if left < 0 || graph.PeakSize(objects, slots) <= uint64(left) {
		return nil
	}
	return roomIn(ownIndex().dir, int64(graph.FileSize(objects, slots)))
}

// roomIn gives a file of so many bytes in dir, if it takes half of the free space at most.
func roomIn(dir string, size int64) *room.Room {
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return nil
	}
	if free, err := vfs.OS.Free(dir); err != nil || size > free/2 {
		return nil
	}
	r, err := room.New(dir, size)
	if err != nil {
		return nil
	}
	return r
}

// Keep keeps the graph of h, unless it is from here, or too small or too large. That it cannot is no error.
func (c *graphCache) Keep(h *retention.Heap) {
	if h.Kept || h.Graph == nil {
		return
	}
	size := h.Graph.KeptSize()
	if size < c.limits.least || size > c.limits.all/2 {
		return
	}
	name, ok := c.file(h.About.Number)
	if !ok || os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	if free, err := vfs.OS.Free(c.dir); err != nil || free >= 0 && size > free/c.limits.free {
		return
	}
	if c.put(name, h.Graph) == nil {
		c.sweepGraphs()
	}
}

func (c *graphCache) put(name string, g *graph.Graph) error {
	f, err := os.CreateTemp(c.dir, graphTemp)
	if err != nil {
		return err
	}
	if err = errors.Join(g.Write(f), f.Close()); err == nil {
		if again, ok := c.key(c.path); !ok || filepath.Base(name)[:len(again)] != again {
			err = errors.New("the recording has changed")
		} else {
			err = os.Rename(f.Name(), name)
		}
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// sweepGraphs removes the least recently used graphs until the others fit, and what was never finished.
func (c *graphCache) sweepGraphs() {
	for _, f := range c.files(graphTemp + "*") {
		if st, err := os.Lstat(f); err == nil && time.Since(st.ModTime()) > graphTempAge {
			_ = os.Remove(f)
		}
	}
	type kept struct {
		name string
		at   time.Time
		size int64
	}
	var all []kept
	for _, f := range c.files(graphFiles) {
		if st, err := os.Lstat(f); err == nil {
			all = append(all, kept{f, st.ModTime(), st.Size()})
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return b.at.Compare(a.at) })
	sum := int64(0)
	for _, k := range all { // the newest first
		if sum += k.size; sum > c.limits.all {
			_ = os.Remove(k.name)
		}
	}
}
