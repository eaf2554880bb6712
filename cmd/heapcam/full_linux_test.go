package main

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestFullOutput: a verb whose output does not fit on its disk ends with status 10 and says so, also where it prints
// text. One whose reader has left ends as usual.
func TestFullOutput(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	hostileRing(t, dir+"/ring")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("not run: a full disk (%v)", err)
	}
	defer full.Close()
	read, left, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	defer left.Close()
	for _, args := range []string{"report ring", "report --json ring", "histogram ring", "group --csv ring",
		"dump ring", "verify ring", "version", "help"} {
		code := 0
		_, errs := talk(t, func() { os.Stdout = full; code = run(strings.Fields(args)) })
		if code != exitNoRoom || !strings.Contains(string(errs), "the output is incomplete") {
			t.Errorf("%s: status %d: %s", args, code, errs)
		}
	}
	for _, args := range []string{"histogram ring", "version"} {
		code := 0
		_, errs := talk(t, func() { os.Stdout = left; code = run(strings.Fields(args)) })
		if code != exitOK {
			t.Errorf("%s, reader gone: status %d: %s", args, code, errs)
		}
	}
	err = onFullDisk(&fs.PathError{Op: "write", Path: dir + "/.x.csv.1", Err: syscall.ENOSPC})
	if !strings.HasPrefix(err.Error(), "the disk of "+dir+" is full (") {
		t.Error(err)
	}
}
