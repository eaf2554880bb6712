// Command fakeprobe is a process with a probe, as far as an agent can see: it makes a shared ring in a folder, through a mapping, and lets
// the reference model run in it. For systems that no JVM of tests runs on.
//
//	fakeprobe FOLDER COLLECTIONS end|kill
//
// With kill it ends in the middle of a record, as a process does that is killed.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fakeprobe:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("arguments: FOLDER COLLECTIONS end|kill")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	p, err := ringtest.Create(args[0], ringtest.Config{Mapped: true})
	if err != nil {
		return err
	}
	m := tracetest.New(tracetest.Config{Seed: 1})
	for i := range n {
		behind, err := p.Answer(shmring.OffSyncWanted, shmring.OffSyncDone)
		if err != nil {
			return err
		}
		ep := m.Step(i == 0 || behind > 0)
		size := uint64(0)
		for _, b := range ep.Blocks {
			size += uint64(b.Size())
		}
		for end := time.Now().Add(30 * time.Second); p.Free() < size; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return fmt.Errorf("nobody reads the ring: collection %d", i)
			}
			if err := p.Beat(); err != nil {
				return err
			}
		}
		if ok, err := p.Commit(ep.Blocks...); err != nil || !ok {
			return fmt.Errorf("commit: %v %w", ok, err)
		}
		if err := p.Beat(); err != nil {
			return err
		}
	}
	if args[2] == "kill" {
		return p.WriteBehind([]byte("half a record"))
	}
	return p.End(shmring.StateGoodbye, "")
}
