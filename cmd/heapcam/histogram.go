package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

type histogramRow struct {
	Class   string `json:"class"`
	VMClass string `json:"vm_class,omitempty"` // of hidden classes
	Loader  string `json:"loader,omitempty"`   // where two classes share a name
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
	Filler  bool   `json:"filler,omitempty"`
}

type histogramReply struct {
	Schema  string         `json:"schema"`
	GC      uint64         `json:"gc"`
	JVMGC   uint64         `json:"jvm_gc"`
	Time    time.Time      `json:"time"`
	Objects uint64         `json:"objects"`
	Bytes   uint64         `json:"bytes"`
	Classes []histogramRow `json:"classes"`
}

func newHistogramCmd() *cobra.Command {
	at, top, asJSON := "last", 40, false
	c := &cobra.Command{
		Use:   "histogram FILE",
		Short: "The classes that were alive after one collection",
		Long:  "histogram shows what the heap held after one collection, outside eden. \"Live\" means not known dead: in old space a dead object stays\nuntil its space is collected.",
		Args:  exactly(1, "one FILE: a pulled recording, a ring folder or a ring file"),
		RunE: func(_ *cobra.Command, args []string) error {
			rec, err := openRecording(args[0])
			if err != nil {
				return err
			}
			defer rec.Close()
			gc, err := findGC(rec, at)
			if err != nil {
				return err
			}
			h, err := histogram(rec, gc)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(os.Stdout, h)
			}
			fmt.Printf("after collection %d (%s): %d objects, %s\n", h.GC, h.Time.Local().Format(time.DateTime), h.Objects, humanBytes(int64(h.Bytes)))
			fmt.Printf("%12s %14s  %s\n", "OBJECTS", "BYTES", "CLASS")
			for i, r := range h.Classes {
				if top > 0 && i == top {
					fmt.Fprintf(os.Stderr, "heapcam: and %d more classes (--top 0 shows all)\n", len(h.Classes)-top)
					break
				}
				name := r.Class
				if r.Loader != "" {
					name += " (" + r.Loader + ")"
				}
				fmt.Printf("%12d %14d  %s\n", r.Objects, r.Bytes, name)
			}
			return nil
		},
	}
	c.Flags().StringVar(&at, "at", at, "which collection: a number, first, last, peak, or a time (15:04:05 or RFC 3339)")
	c.Flags().IntVar(&top, "top", top, "how many classes to print; 0: all")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, all classes")
	return c
}

// gcPoint is one collection after which the state is known.
type gcPoint struct {
	gc, bytes uint64
	at        time.Time
}

// findGC finds the collection that ref means.
func findGC(rec *ringstore.Recording, ref string) (uint64, error) {
	if n, err := strconv.ParseUint(ref, 10, 64); err == nil {
		return n, nil
	}
	var points []gcPoint
	if err := replay(rec, func(r *heap.Replayer, c *heap.Collection) bool {
		if c.Known {
			points = append(points, gcPoint{c.GC, c.Bytes, wall(&r.JVM, c.Start+c.Dur)})
		}
		return true
	}); err != nil {
		return 0, err
	}
	if len(points) == 0 {
		return 0, withCode(exitNotFound, "%s: the state is known after no collection", rec.Path)
	}
	switch ref {
	case "first":
		return points[0].gc, nil
	case "last":
		return points[len(points)-1].gc, nil
	case "peak":
		best := points[0]
		for _, p := range points {
			if p.bytes > best.bytes {
				best = p
			}
		}
		return best.gc, nil
	}
	first, last := points[0].at, points[len(points)-1].at
	t, err := parseTime(ref, last)
	if err != nil {
		return 0, err
	}
	if t.Before(first.Truncate(time.Second)) || t.After(last.Add(time.Second)) {
		return 0, withCode(exitNotFound, "--at %s: the recording goes from %s to %s", ref, first.Local().Format(time.RFC3339), last.Local().Format(time.RFC3339))
	}
	i := sort.Search(len(points), func(i int) bool { return points[i].at.After(t) })
	return points[max(i-1, 0)].gc, nil
}

func parseTime(ref string, day time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, ref); err == nil {
		return t, nil
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.ParseInLocation(layout, ref, time.Local); err == nil {
			d := day.Local()
			return time.Date(d.Year(), d.Month(), d.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.Local), nil
		}
	}
	return time.Time{}, usage("--at %s: a number, first, last, peak, or a time like 15:04:05", ref)
}

func wall(j *trace.JVM, ns uint64) time.Time {
	return time.UnixMilli(int64(j.T0WallMS)).Add(time.Duration(ns))
}

// replay calls f after each collection until it returns false.
func replay(rec *ringstore.Recording, f func(*heap.Replayer, *heap.Collection) bool) error {
	src := newSource(rec.Files...)
	defer src.Close()
	r := heap.NewReplayer(src)
	for {
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			for _, e := range src.Damage {
				fmt.Fprintf(os.Stderr, "heapcam: %v\n", e)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", rec.Path, err)
		}
		if !f(r, c) {
			return nil
		}
	}
}

func histogram(rec *ringstore.Recording, gc uint64) (*histogramReply, error) {
	var h *histogramReply
	var lo, hi uint64
	known := true
	err := replay(rec, func(r *heap.Replayer, c *heap.Collection) bool {
		if lo == 0 {
			lo = c.GC
		}
		hi = c.GC
		if c.GC != gc {
			return true
		}
		if known = c.Known; known {
			h = rows(r, c)
		}
		return false
	})
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, withCode(exitNotFound, "%s: the state after collection %d is not known (`heapcam report` shows where it is)", rec.Path, gc)
	case h == nil:
		return nil, withCode(exitNotFound, "%s: collection %d is not in it: it goes from %d to %d", rec.Path, gc, lo, hi)
	}
	return h, nil
}

func rows(r *heap.Replayer, c *heap.Collection) *histogramReply {
	h := &histogramReply{Schema: "heapcam.histogram/1", GC: c.GC, JVMGC: c.JVMGC, Time: wall(&r.JVM, c.Start+c.Dur).UTC(), Classes: []histogramRow{}}
	byName := map[string][]int{}
	type key struct {
		class, vm string
		loader    uint64
	}
	at := map[key]int{}
	var loaders []uint64
	for id, n := range r.State.PerType() {
		if n.Objects == 0 {
			continue
		}
		t := r.Types[uint64(id)]
		k := key{class: trace.PrettyClass(t.Name), loader: t.Loader}
		if t.Flags&trace.TypeHidden != 0 {
			k.vm = t.Name
		}
		i, ok := at[k]
		if !ok {
			i = len(h.Classes)
			at[k] = i
			byName[k.class] = append(byName[k.class], i)
			h.Classes = append(h.Classes, histogramRow{Class: k.class, VMClass: k.vm, Filler: t.Flags&trace.TypeFiller != 0})
			loaders = append(loaders, t.Loader)
		}
		h.Classes[i].Objects += n.Objects
		h.Classes[i].Bytes += n.Bytes
		h.Objects += n.Objects
		h.Bytes += n.Bytes
	}
	for _, same := range byName {
		if len(same) < 2 {
			continue
		}
		for _, i := range same {
			h.Classes[i].Loader = fmt.Sprintf("%s #%d", r.Loaders[loaders[i]].Name, loaders[i])
		}
	}
	sort.Slice(h.Classes, func(i, j int) bool {
		a, b := &h.Classes[i], &h.Classes[j]
		if a.Bytes != b.Bytes {
			return a.Bytes > b.Bytes
		}
		return a.Class+a.VMClass+a.Loader < b.Class+b.VMClass+b.Loader
	})
	return h
}
