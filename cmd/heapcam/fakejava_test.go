//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// fakeJava is a JVM with a probe, as far as heapcam can see: it makes a ring in the folder that JAVA_TOOL_OPTIONS
// names and lets the reference model run in it. Arguments: collections, then exit CODE, kill, or hang.
func fakeJava() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "fakejava:", err)
			os.Exit(99)
		}
	}
	dir := ""
	for _, o := range strings.Fields(os.Getenv("JAVA_TOOL_OPTIONS")) {
		if _, opts, ok := strings.Cut(o, ".so="); ok && strings.HasPrefix(o, "-agentpath:") {
			for _, kv := range strings.Split(opts, ",") {
				if v, ok := strings.CutPrefix(kv, "dir="); ok {
					dir = v
				}
			}
		}
	}
	n, err := strconv.Atoi(os.Args[1])
	fail(err)
	p, err := ringtest.Create(dir, ringtest.Config{})
	fail(err)
	m := tracetest.New(tracetest.Config{Seed: 1})
	for i := range n {
		behind, err := p.Answer(shmring.OffSyncWanted, shmring.OffSyncDone)
		fail(err)
		ep := m.Step(i == 0 || behind > 0)
		size := uint64(0)
		for _, b := range ep.Blocks {
			size += uint64(b.Size())
		}
		for p.Free() < size {
			time.Sleep(time.Millisecond)
		}
		_, err = p.Commit(ep.Blocks...)
		fail(err)
		fail(p.Beat())
	}
	for range 10000 { // its name is looked for as long as it lives; on a busy machine it would be over before that
		if p.Peek64(shmring.OffTail) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Println("fakejava ran", n)
	switch os.Args[2] {
	case "kill":
		p.WriteBehind([]byte("half a block"))
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "hang":
		for {
			time.Sleep(50 * time.Millisecond)
			p.Beat()
		}
	}
	fail(p.End(shmring.StateGoodbye, ""))
	code, err := strconv.Atoi(os.Args[3])
	fail(err)
	os.Exit(code)
}

// cmdStatus runs a program and compares its exit status: status CODE PROGRAM ARG…
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := err.(*exec.ExitError); ok {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

// cmdDamage copies the largest ring file of a recording, damaged: damage cut|flip|future DIR FILE
func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	dirs, _ := filepath.Glob(filepath.Join(ts.MkAbs(args[1]), "*", "*.hcr"))
	var b []byte
	for _, f := range dirs {
		if c, err := os.ReadFile(f); err == nil && len(c) > len(b) {
			b = c
		}
	}
	if len(b) < 4096 {
		ts.Fatalf("no ring file that is worth damaging: %v", dirs)
	}
	switch args[0] {
	case "cut":
		b = b[:len(b)*2/3]
	case "flip":
		b[len(b)/2] ^= 4
	case "index":
		b[len(b)-50] ^= 4
	case "future":
		b[8]++
		b[100]++ // in a header of another form: else it is a version that was damaged
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b, 0o600))
}
