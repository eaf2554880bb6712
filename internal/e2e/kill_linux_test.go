package e2e

import (
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestKillJVM kills JVMs at random moments: everything up to the last finished collection is there. The JVM logs a pause before the probe
// hears of its end, so one logged pause may be missing: the one in which the kill came.
func TestKillJVM(t *testing.T) {
	rounds := 3
	if full {
		rounds = 20
	}
	for i := range rounds {
		gc, major := collectors[(i+1)%len(collectors)], 17
		if i%2 == 1 {
			major = 25
		}
		t.Run(gc, func(t *testing.T) {
			p := program{major: major, gc: gc, heap: "64m", main: "Steady", args: []string{"2000000", "20000"}, limit: "4MiB", flags: []string{"--emergency", "off"}}
			r := p.start(t)
			await(t, "pid", func() bool { return r.pid() > 0 })
			time.Sleep(time.Duration(300+rand.IntN(900)) * time.Millisecond)
			if err := syscall.Kill(r.pid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if code := r.wait(t); code != 128+9 {
				t.Errorf("status %d, want 137", code)
			}
			rec, logged := r.recorded(t), r.pauses(t).stops
			if logged == 0 {
				t.Fatal("killed before the first collection")
			}
			if d := logged - rec.collections; d < 0 || d > 1 {
				t.Errorf("%d collections recorded, the JVM logged %d", rec.collections, logged)
			}
			file := filepath.Join(t.TempDir(), "incident.heapcam")
			needReader(t)
			if out, errs, code := heapcam(t, "pull", "--out", r.out, "-o", file); code != 0 {
				t.Fatalf("pull: status %d\n%s%s", code, out, errs)
			}
			verify(t, file, 1)
			var rep reportReply
			heapcamJSON(t, &rep, "report", file)
			if n := len(rep.Collections); n == 0 || int(rep.Collections[n-1].GC) < logged-1 {
				t.Errorf("the report ends at %v, the JVM logged %d pauses", rep.Collections[max(0, n-1):], logged)
			}
		})
	}
}

// TestKillRecorder kills heapcam under load: the JVM does not notice.
func TestKillRecorder(t *testing.T) {
	p := program{major: 17, gc: "G1", heap: "64m", main: "Steady", args: []string{"80000", "20000"}, limit: "4MiB"}
	r := p.start(t)
	await(t, "pid", func() bool { return r.pid() > 0 })
	time.Sleep(700 * time.Millisecond)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	pid := r.pid()
	r.cmd.Process.Wait()
	await(t, "end of the JVM", func() bool { return syscall.Kill(pid, 0) != nil })
	if n := r.pauses(t).stops; n < 10 {
		t.Errorf("%d pauses: the JVM did not run on", n)
	}
	await(t, "last line of the program", func() bool {
		return len(r.stdout.String()) > 0 && r.stdout.String()[len(r.stdout.String())-5:] == "done\n"
	})
	dirs, _ := filepath.Glob(filepath.Join(r.out, "*"))
	if len(dirs) != 1 {
		t.Fatalf("recordings: %v", dirs)
	}
	verify(t, dirs[0], 1)
}
