//go:build unix

package ringstore_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
)

// TestSoak kills a process that writes a ring with SIGKILL at random moments, again and again, while another one
// pulls and freezes: what the store accepted is there, whole and in order, the limit holds, and the next process
// continues. HEAPCAM_SOAK: rounds at least, default 6; HEAPCAM_SOAK_FOR: how long at least, default 0.
func TestSoak(t *testing.T) {
	rounds := 6
	if n, err := strconv.Atoi(os.Getenv("HEAPCAM_SOAK")); err == nil {
		rounds = n
	}
	least, _ := time.ParseDuration(os.Getenv("HEAPCAM_SOAK_FOR"))
	start := time.Now()
	d := filepath.Join(t.TempDir(), "rec")
	inc := &ringstore.Incidents{Dir: filepath.Join(filepath.Dir(d), "incidents"), Max: 8 << 20}
	const m = 4 << 20
	limit := int64(m + m/4)
	last, frames, torn, pulls := uint64(0), uint64(0), 0, 0
	round := 0
	for ; round < rounds || time.Since(start) < least; round++ {
		child := exec.Command(os.Args[0], "-test.run=^TestSoakChild$")
		child.Env = append(os.Environ(), "HEAPCAM_SOAK_CHILD="+d, "HEAPCAM_SOAK_FROM="+strconv.FormatUint(last+1, 10))
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		end := time.AfterFunc(time.Duration(5+rand.IntN(150))*time.Millisecond, func() { child.Process.Kill() })
		pulled := make(chan error, 1)
		go func() {
			switch round % 5 {
			case 0:
				_, err := ringstore.Pull(context.Background(), d, io.Discard, ringstore.PullOptions{})
				pulled <- err
			case 1:
				_, err := inc.Freeze(d, ringstore.CauseStorm, "soak")
				pulled <- err
			default:
				pulled <- nil
			}
		}()
		s := bufio.NewScanner(out)
		for s.Scan() {
			if n, err := strconv.ParseUint(s.Text(), 10, 64); err == nil {
				last = n
				frames++
			} else if s.Text() != "PASS" {
				t.Errorf("the child says %s", s.Text())
			}
		}
		child.Wait()
		end.Stop()
		if err := <-pulled; err == nil && round%5 < 2 {
			pulls++
		}
		names, _ := filepath.Glob(d + "/*.hcr")
		next, newest := uint64(0), uint64(0)
		for i, n := range names {
			f, err := ringstore.OpenFile(n)
			if err != nil {
				if i == len(names)-1 { // killed while it was made
					continue
				}
				t.Fatal(err)
			}
			for fr, err := range f.Frames() {
				if err != nil { // killed in a frame, or in the index of the file before the one that had just begun
					if i < len(names)-2 || !errors.Is(err, ringstore.ErrTorn) {
						t.Fatalf("round %d: %v", round, err)
					}
					torn++
					continue
				}
				k := binary.LittleEndian.Uint64(fr.Payload)
				if string(fr.Payload) != string(frame(k, len(fr.Payload))) || next != 0 && k != next {
					t.Fatalf("round %d: frame %d, want %d", round, k, next)
				}
				next, newest = k+1, k
			}
			f.Close()
		}
		if newest < last {
			t.Fatalf("round %d: frame %d was accepted, the newest is %d", round, last, newest)
		}
		last = newest // one may be there that the child could not tell of
		if n := ringstore.Occupied(ringstore.OS, d); n > limit {
			t.Fatalf("round %d: %d bytes are occupied, at most %d", round, n, limit)
		}
		if n := inc.Size(); n > inc.Max {
			t.Fatalf("round %d: incidents occupy %d bytes, at most %d", round, n, inc.Max)
		}
	}
	t.Logf("%d rounds in %s: %d frames accepted, %d torn tails, %d pulls and incidents", round,
		time.Since(start).Round(time.Second), frames, torn, pulls)
}

// TestSoakChild is the process that is killed.
func TestSoakChild(t *testing.T) {
	d := os.Getenv("HEAPCAM_SOAK_CHILD")
	if d == "" {
		t.Skip("not run: it is a part of TestSoak")
	}
	n, err := strconv.ParseUint(os.Getenv("HEAPCAM_SOAK_FROM"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := ringstore.Open(ringstore.Config{Dir: d, MaxTraceSize: 4 << 20, Compression: "none"},
		ringstore.Identity{Session: session, Name: "soak"})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(n, 1))
	for ; ; n++ {
		info := ringstore.FrameInfo{Source: n, T0: n, T1: n}
		b := frame(n, 8+r.IntN(20000))
		if s.Stats().Rotate {
			err = s.Rotate(b, info)
		} else {
			err = s.Append(b, info)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n%50 == 0 {
			s.SyncSoon()
		}
		if _, err := fmt.Println(n); err != nil {
			t.Fatal(err)
		}
	}
}
