package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// What -stop repeats: the machine may be busy, so each figure is the smallest of several.
const listings, dumps = 7, 3

// measureStop compares the stop of a reference listing with a heap dump of the same JVM, and reads neither.
func measureStop(n string) error {
	dir, err := os.MkdirTemp("", "holders")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	j, err := compiled(dir, n)
	if err != nil {
		return err
	}
	defer j.end()
	a, err := attached(dir, j)
	if err != nil {
		return err
	}
	defer a.end()
	var objects, slots uint64
	walk, stop := time.Hour, time.Hour
	for range listings {
		var reply []byte
		if _, err := timed(&reply, "bin/heapcam", "references", j.pid(), "--socket", a.sock, "--max-reference-pause",
			"20s", "--json"); err != nil {
			return err
		}
		var got taken
		if err := json.Unmarshal(reply, &got); err != nil {
			return err
		}
		objects, slots = got.Objects, got.Slots
		walk, stop = min(walk, time.Duration(got.WalkNS)), min(stop, time.Duration(got.StopNS))
	}
	if _, err := timed(nil, "bin/heapcam", "detach", j.pid(), "--socket", a.sock); err != nil {
		return err
	}
	dump := 1e9
	for range dumps {
		file := filepath.Join(dir, "heap.hprof")
		used := cpu(j.pid())
		jcmd := filepath.Join(*home, "bin", "jcmd")
		if _, err := timed(nil, jcmd, j.pid(), "GC.heap_dump", "-all", file); err != nil {
			return err
		}
		dump = min(dump, cpu(j.pid())-used)
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	fmt.Printf("| %d | %.2f | %.1f | %.1f | %.1f | %.2f | 1/%.0f |\n", objects, float64(slots)/float64(objects),
		walk.Seconds()*1e3, stop.Seconds()*1e3, float64(walk)/float64(objects), dump, dump/walk.Seconds())
	return nil
}
