package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
	"github.com/heapcam/heapcam/shmring"
)

// spoolStatus asks the agent.
func (d *daemon) spoolStatus(t *testing.T) (s spool.Status) {
	t.Helper()
	if st := d.status(t).Spool; st != nil {
		s = *st
	}
	return s
}

// TestSpool lets two JVMs in namespaces of their own write rings into a folder, without any agent: one is killed, long
// after its ring was full. An agent that sees none of their processes comes later and takes both: of the killed one the
// newest collections, of the other one all. Then it takes recordings that are dropped there, and leaves, and tells,
// what is none.
func TestSpool(t *testing.T) {
	t.Parallel()
	needReader(t)
	needRoot(t, "JVMs and an agent in pid namespaces of their own", "unshare")
	// The counters that a JVM which is killed leaves behind would be those of this host's process of its number.
	own := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "--ipc",
		"sh", "-c", `mkdir -p -m 755 /tmp/hsperfdata_root && mount -t tmpfs none /tmp/hsperfdata_root && exec "$@"`,
		"sh"}
	spool := filepath.Join(t.TempDir(), "spool")
	if err := os.Mkdir(spool, 0o777); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, "--max-trace-size", "64MiB", "--emergency", "off", "--spool", spool)
	d.start(t)
	lib, _, _ := strings.Cut(d.option(t), "=")
	d.kill() // nobody reads for now
	end := filepath.Join(t.TempDir(), "end")
	start := func(ring string, args ...string) *running {
		p := program{major: 17, gc: "Serial", heap: "32m", main: "Until", args: append([]string{end}, args...),
			opts: []string{lib + "=spool:" + spool + ",ring=" + ring}}
		return p.plain(t, own...)
	}
	ringOf := func(pid int) (path string, h shmring.Status) {
		paths, _ := shmring.Scan(spool)
		for _, path := range paths {
			r, err := shmring.Open(path, shmring.Options{Away: true})
			if err != nil {
				continue
			}
			h, err := r.Status()
			mine := err == nil && r.MappedBy(pid)
			r.Close()
			if mine {
				return path, h
			}
		}
		return "", h
	}
	killed, living := start("2097152", "1000", "40"), start("16777216", "5000", "5")
	pidK, pidL := child(t, killed), child(t, living)
	var ringK string
	var atDeath shmring.Status
	await(t, "the ring of the one whose ring is full gives up what is oldest, twice", func() bool {
		ringK, atDeath = ringOf(pidK)
		return atDeath.Tail > 3<<19
	})
	await(t, "the other one records", func() bool { _, h := ringOf(pidL); return h.Epochs > 5 })
	if atDeath.PID == uint32(pidK) {
		t.Fatalf("the JVM is in no namespace of its own")
	}
	if err := syscall.Kill(pidK, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed.cmd.Wait()
	if r, err := shmring.Open(ringK, shmring.Options{Away: true}); err != nil {
		t.Fatal(err)
	} else if life, err := r.Alive(); err != nil || life != shmring.Gone {
		t.Errorf("the killed JVM is %v (%v)", life, err)
	} else {
		atDeath, _ = r.Status()
		r.Close()
	}

	d.wrap = own
	d.start(t)
	find := func(session string) (s session.Status) {
		for _, s := range d.status(t).JVMs {
			if s.Session == session {
				return s
			}
		}
		return s
	}
	await(t, "the killed one's ring is drained and gone", func() bool {
		_, err := os.Lstat(ringK)
		return os.IsNotExist(err) && find(atDeath.Session).Phase == session.KilledPhase
	})
	k := find(atDeath.Session)
	// it may have been killed in a pause, before that was recorded
	last := k.LastGC == atDeath.Epochs || k.LastGC+1 == atDeath.Epochs
	if !k.Spool || !last || k.PID != int(atDeath.PID) || !strings.HasPrefix(k.Name, "Until") {
		t.Errorf("%+v, want the newest collection %d of %s", k, atDeath.Epochs, atDeath.Name)
	}
	verify(t, k.Dir, 1)

	ringL, h := ringOf(pidL)
	await(t, "the living one is recorded", func() bool { return find(h.Session).Collections > h.Epochs })
	if l := find(h.Session); !l.Spool || l.Phase != session.Recording ||
		l.RingOnDisk != (h.Flags&shmring.FlagDisk != 0) {
		t.Errorf("%+v", l)
	}

	drops(t, d, spool, k)

	living.end(t, end)
	await(t, "the end", func() bool { return find(h.Session).Phase == session.EndedPhase })
	l := find(h.Session)
	if lost := l.Dropped; l.Collections != l.LastGC || lost.RingEpochs+lost.StoreEpochs+lost.Corrupt != 0 {
		t.Errorf("%d of %d collections, lost %+v", l.Collections, l.LastGC, lost)
	}
	verify(t, l.Dir, 1)
	if _, err := os.Lstat(ringL); !os.IsNotExist(err) {
		t.Errorf("the drained ring is still there: %v", err)
	}
}

// drops drops recordings and what is none.
func drops(t *testing.T, d *daemon, spool string, rec session.Status) {
	t.Helper()
	put := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(spool, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pulled := filepath.Join(t.TempDir(), "incident.heapcam")
	if _, errs, code := heapcam(t, "pull", rec.Dir, "-o", pulled); code != 0 {
		t.Fatal(errs)
	}
	b, err := os.ReadFile(pulled)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{ // and the reason
		"none.heapcam":       "this is not a heapcam recording",
		"cut.heapcam":        "cut off",
		"flipped.heapcam":    "corrupt",
		"link.heapcam":       "regular",
		"twice.heapcam":      "2 names",
		"fifo.heapcam":       "regular",
		"notes.txt":          "neither a ring nor a recording",
		"heapcam-7-7.ring":   "regular",
		"heapcam-8-8.ring":   "no magic",
		"with a link inside": "regular",
	}
	put("none.heapcam", []byte("no tar"))
	put("cut.heapcam", b[:len(b)/2])
	flipped := append([]byte(nil), b...)
	flipped[len(flipped)/2] ^= 0x55
	put("flipped.heapcam", flipped)
	put("notes.txt", []byte("hello"))
	put("heapcam-8-8.ring", make([]byte, 4096+1<<20))
	if f, err := os.OpenFile(filepath.Join(spool, "heapcam-8-8.ring"), os.O_WRONLY, 0); err == nil {
		f.WriteString("NO RING.")
		f.Close()
	}
	secret := filepath.Join(t.TempDir(), "secret") // somebody else's
	if err := os.WriteFile(secret, b, 0o600); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(spool, "with a link inside")
	for _, err := range []error{os.Symlink(secret, filepath.Join(spool, "link.heapcam")),
		os.Symlink(secret, filepath.Join(spool, "heapcam-7-7.ring")),
		os.Link(secret, filepath.Join(spool, "twice.heapcam")),
		syscall.Mkfifo(filepath.Join(spool, "fifo.heapcam"), 0o666), os.Mkdir(inside, 0o777),
		os.Symlink(secret, filepath.Join(inside, "00000001.hcr"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	put("good.heapcam", b)
	folder := filepath.Join(spool, rec.ID)
	if err := os.CopyFS(filepath.Join(spool, ".copy"), os.DirFS(rec.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(spool, ".copy"), folder); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	await(t, "two are taken, the others are reported", func() bool {
		s := d.spoolStatus(t)
		clear(reasons)
		for _, i := range s.Left {
			reasons[i.Name] = i.Reason
		}
		return s.Taken == 2 && len(s.Left) == len(bad)
	})
	for name, why := range bad {
		if !strings.Contains(reasons[name], why) {
			t.Errorf("%s: %q, want %q", name, reasons[name], why)
		}
		if _, err := os.Lstat(filepath.Join(spool, name)); err != nil {
			t.Errorf("what is not taken must stay: %v", err)
		}
	}
	for _, gone := range []string{folder, filepath.Join(spool, "good.heapcam")} {
		if _, err := os.Lstat(gone); !os.IsNotExist(err) {
			t.Errorf("%s was taken and is still there: %v", gone, err)
		}
	}
	taken := regexp.MustCompile(`took a recording from the spool folder.* target=(\S+)`)
	for _, m := range taken.FindAllStringSubmatch(d.stderr.String(), -1) {
		verify(t, m[1], 1)
		var who struct {
			UID     int
			Session string
		}
		b, err := os.ReadFile(filepath.Join(m[1], "recording.json"))
		if err == nil {
			err = json.Unmarshal(b, &who)
		}
		if err != nil || who.UID != 0 || who.Session != rec.Session {
			t.Errorf("%s: %+v %v", m[1], who, err)
		}
		if filepath.Dir(m[1]) != d.out || !strings.HasPrefix(filepath.Base(m[1]), rec.ID) {
			t.Errorf("taken as %s, want a name like %s", m[1], rec.ID)
		}
	}
	out, _, _ := heapcam(t, "status", "--socket", d.sock, "--out", d.out)
	if !strings.Contains(out, "Not taken over from the spool folder "+spool) ||
		!strings.Contains(out, fmt.Sprintf("%s-2", rec.ID)) {
		t.Errorf("status:\n%s", out)
	}
	for name := range bad {
		os.RemoveAll(filepath.Join(spool, name))
	}
	await(t, "nothing is left", func() bool { return len(d.spoolStatus(t).Left) == 0 })
}

// TestSpoolSeen has an agent that discovers, and sees the process, find a JVM of another user whose ring lies in the
// spool folder: recorded once, by its real pid, as its user's own.
func TestSpoolSeen(t *testing.T) {
	t.Parallel()
	needReader(t)
	const uid = 64128
	needRoot(t, "a JVM of another user that writes into a spool folder", "setpriv")
	t.Cleanup(func() { os.RemoveAll(fmt.Sprintf("/tmp/hsperfdata_%d", uid)) })
	spool := filepath.Join(t.TempDir(), "spool")
	if err := os.Mkdir(spool, 0o700); err != nil {
		t.Fatal(err)
	}
	os.Chmod(spool, 0o1777)
	os.Chmod(filepath.Dir(spool), 0o755)
	os.Chmod(filepath.Dir(filepath.Dir(spool)), 0o755)
	d, mark := discoverer(t, "--emergency", "off", "--spool", spool)
	d.start(t)
	m := regexp.MustCompile(`option="?-agentpath:([^\s"=]+)`).FindStringSubmatch(d.stderr.String())
	if m == nil {
		t.Fatal(d.stderr.String())
	}
	b, err := os.ReadFile(m[1])
	if err != nil {
		t.Fatal(err)
	}
	// by which it is known before its ring is there; the agent's own folder is closed to others
	lib := filepath.Join(filepath.Dir(spool), "libheapcam.so")
	if err := os.WriteFile(lib, b, 0o755); err != nil {
		t.Fatal(err)
	}
	end := filepath.Join(t.TempDir(), "end")
	p := program{major: 17, gc: "G1", heap: "64m", main: "Until", args: []string{end, "2000", "2"},
		opts: []string{mark, "-agentpath:" + lib + "=spool:" + spool}}
	r := p.plain(t, "setpriv", "--reuid", fmt.Sprint(uid), "--regid", fmt.Sprint(uid), "--clear-groups")
	pid := child(t, r)
	await(t, "its recording", func() bool { s, _ := d.of(t, pid); return s.Collections > 3 })
	if all := d.status(t).JVMs; len(all) != 1 || all[0].Spool || all[0].UID != uid || all[0].Name != "Until" ||
		all[0].Phase != session.Recording {
		t.Errorf("%+v", all)
	}
	if left := d.spoolStatus(t).Left; len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	if _, o := d.of(t, pid); o.PID != 0 {
		t.Errorf("it is recorded and listed as not recorded: %+v", o)
	}
	if err := os.WriteFile(end, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil || r.stderr.String() != "" {
		t.Errorf("the JVM: %v: %s", err, r.stderr.String())
	}
	await(t, "the end", func() bool { s, _ := d.of(t, pid); return s.Phase == session.EndedPhase })
	s, _ := d.of(t, pid)
	verify(t, s.Dir, 1)
	if rings, _ := shmring.Scan(spool); len(rings) != 0 {
		t.Errorf("left: %v", rings)
	}
}

// TestSpoolRefused gives the probe spool folders that it cannot use: one line says so, the JVM runs on, and nothing is
// made anywhere.
func TestSpoolRefused(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.start(t)
	lib, _, _ := strings.Cut(d.option(t), "=")
	d.kill()
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		if err := os.WriteFile(filepath.Join(full, shmring.FileName(uint32(i+1), 1)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for option, want := range map[string]string{
		"spool:relative":                     "must be an absolute path",
		"spool=/" + strings.Repeat("x", 300): "less than 256 bytes",
		"depth=full,spool":                   "has no value",
		"spool:" + dir + "/none":             "cannot use the spool folder",
		"spool:" + dir + "/file":             "cannot use the spool folder",
		"spool:/proc":                        "not on tmpfs",
		"spool:" + full:                      "64 rings that no agent has taken",
	} {
		out, err := exec.Command(filepath.Join(jdk(t, 17), "bin", "java"), lib+"="+option, "-Xmx32m",
			"-XX:+UseSerialGC",
			"-XX:TieredStopAtLevel=1", "-version").CombinedOutput()
		if n := strings.Count(string(out), "heapcam: "); err != nil || n != 1 || !strings.Contains(string(out), want) ||
			!strings.Contains(string(out), "openjdk version") {
			t.Errorf("%s: %v: %s", option, err, out)
		}
	}
	if rings, err := os.ReadDir(full); err != nil || len(rings) != 64 {
		t.Errorf("%d rings, %v", len(rings), err)
	}
}
