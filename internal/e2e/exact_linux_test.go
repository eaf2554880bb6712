package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestExactSites rewrites the bytecode of a program (`--sites exact`) whose sites allocate arrays of lengths of
// their own: no array has another's site, most have one, and the program ends as it does without. The ring rotates: of
// old objects the sites come from sync points, which have time for all of them (--max-sync-pause 0) on a slow machine,
// too.
func TestExactSites(t *testing.T) {
	tiers.Gate(t, "exact sites by rewritten bytecode")
	t.Parallel()
	type pair struct {
		major     int
		gc, probe string
		opts      []string
	}
	// Helper threads find some survivors of eden, all (crew=8), or fault at some (crew=11).
	for _, c := range parts(t, pair{17, "G1", "crew=8", nil}, pair{25, "Parallel", "", []string{"-Xcheck:jni"}},
		pair{25, "Parallel", "crew=11", nil}, pair{17, "Serial", "", []string{"-Xverify:all"}}) {
		t.Run(fmt.Sprintf("%s/%d %s", c.gc, c.major, c.probe), func(t *testing.T) {
			t.Parallel()
			p := program{major: c.major, gc: c.gc, heap: "64m", main: "Exact", args: []string{"30000000"}, opts: c.opts,
				flags: []string{"--sites", "exact", "--overhead-cpu", "0", "--max-sync-pause", "0"},
				probe: c.probe, limit: "12MiB"} // the ring rotates
			r, right, wrong, all := p.exact(t)
			if wrong > 0 || right < all/3 {
				t.Errorf("%d right and %d wrong of %d", right, wrong, all)
			}
			// The first file is gone, so reading has begun at a sync point.
			dir := r.recorded(t).dir
			if files, _ := filepath.Glob(filepath.Join(dir, "00000001.hcr")); len(files) > 0 {
				t.Error("the ring has not rotated")
			}
			sitesAtSyncPoints(t, dir)
		})
	}
}

// sitesAtSyncPoints demands that who begins to read at a later file knows nearly as many sites at its sync point itself
// as who has read all of the recording.
func sitesAtSyncPoints(t *testing.T, dir string) {
	t.Helper()
	var c struct {
		SyncPoints []struct {
			GC    uint64    `json:"gc"`
			Alone []float64 `json:"alone"`
			Whole []float64 `json:"whole"`
		} `json:"sync_points"`
	}
	heapcamJSON(t, &c, "coverage", dir)
	if len(c.SyncPoints) < 2 {
		t.Fatalf("%d sync points", len(c.SyncPoints))
	}
	compared := 0
	for _, p := range c.SyncPoints[1:] {
		if len(p.Alone) == 0 || len(p.Whole) == 0 || p.Whole[0] == 0 {
			continue
		}
		if compared++; p.Alone[0] < 0.9*p.Whole[0] {
			t.Errorf("sync point after collection %d: %.2f of the sites are known, and %.2f to who read all", p.GC,
				p.Alone[0], p.Whole[0])
		}
	}
	if compared == 0 {
		t.Errorf("no sync point is compared: %+v", c.SyncPoints)
	}
	t.Logf("%+v", c.SyncPoints)
}

// exact runs a program that ends with "done", and gives what exactSites says of its recording.
func (p *program) exact(t *testing.T) (r *running, right, wrong, all uint64) {
	t.Helper()
	r = p.start(t)
	r.finish(t)
	if out := r.stdout.String(); !strings.HasSuffix(strings.TrimSpace(out), "done") ||
		strings.Contains(out+r.stderr.String(), "WARNING in native") {
		t.Fatalf("%s%s", out, r.stderr.String())
	}
	dir := r.recorded(t).dir
	verify(t, dir, 1)
	right, wrong, all = exactSites(t, dir)
	t.Logf("%d of %d right, %d wrong; %s", right, all, wrong, tail(r.stderr.String()))
	return r, right, wrong, all
}

// TestHashSites: with `--sites hash` sites outlive full collections, in identity hashes, which stay the same for the
// program. One in some thousand hashes that the JVM has made may look like a site.
func TestHashSites(t *testing.T) {
	tiers.Gate(t, "exact sites in identity hashes")
	t.Parallel()
	type pair struct {
		major int
		gc    string
		opts  []string
	}
	// Where Parallel gives back what it emptied, that state is lost, and all sites until two collections later.
	parallel := []string{"-Xcheck:jni", "-XX:-UseAdaptiveSizePolicy"}
	for _, c := range parts(t, pair{17, "Parallel", parallel}, pair{17, "G1", nil},
		pair{25, "Serial", nil}, pair{25, "G1", []string{"-XX:+UseCompactObjectHeaders"}}) {
		t.Run(fmt.Sprintf("%s/%d", c.gc, c.major), func(t *testing.T) {
			t.Parallel()
			p := program{major: c.major, gc: c.gc, heap: "64m", main: "Exact", args: []string{"6000000", "3"},
				opts: c.opts, flags: []string{"--sites", "hash", "--overhead-cpu", "0"}, limit: "64MiB"}
			r, right, wrong, all := p.exact(t)
			if wrong > all/1000 || right < all/3 {
				t.Errorf("%d right and %d wrong of %d", right, wrong, all)
			}
			if !strings.Contains(r.stderr.String(), "identity hashes have one") {
				t.Error(tail(r.stderr.String()))
			}
		})
	}
}

// TestExactSitesAttached has the classes of a JVM that runs changed, given back, and changed again.
func TestExactSitesAttached(t *testing.T) {
	tiers.Gate(t, "exact sites of a JVM that runs")
	t.Parallel()
	p := program{major: 17, gc: "G1", heap: "64m", main: "Exact", args: []string{"2000000000"},
		opts: []string{"-Xcheck:jni"}, timeout: 3 * time.Minute}
	r := p.plain(t)
	pid := strconv.Itoa(r.cmd.Process.Pid)
	time.Sleep(time.Second)
	if _, errs, code := heapcam(t, "record", "--sites", "exact", pid); code != 2 ||
		!strings.Contains(errs, "--yes") {
		t.Errorf("without --yes: status %d, %s", code, errs)
	}
	// Two recordings, and longer ones where a busy machine has no time to change the classes within the first seconds.
	for i, enough := 0, 0; i < 5 && enough < 2; i++ {
		out := filepath.Join(t.TempDir(), strconv.Itoa(i))
		if _, errs, code := heapcam(t, "record", "--sites", "exact", "--yes", "--for", strconv.Itoa(4+4*i)+"s", "--out",
			out, pid); code != 0 {
			t.Fatalf("status %d: %s", code, errs)
		}
		dirs, err := filepath.Glob(filepath.Join(out, "*"))
		if err != nil || len(dirs) != 1 {
			t.Fatalf("%v, %v", dirs, err)
		}
		verify(t, dirs[0], 1)
		right, wrong, all := exactSites(t, dirs[0])
		t.Logf("%d right and %d wrong of %d", right, wrong, all)
		if right >= all/2 {
			enough++
		}
		if wrong > 0 || (i == 4 && enough < 2) {
			t.Errorf("%d right and %d wrong of %d", right, wrong, all)
		}
	}
	if s := r.stdout.String() + r.stderr.String(); strings.Contains(s, "WARNING in native") {
		t.Error(s)
	}
}

// TestExactSitesStale begins a loop while a JVM is recorded with exact sites, and records it again. The loop still runs
// the code of the first recording, so its numbers of sites must mean nothing in the second one.
func TestExactSitesStale(t *testing.T) {
	tiers.Gate(t, "exact sites of a loop that began in an earlier recording")
	t.Parallel()
	p := program{major: 17, gc: "Serial", heap: "64m", main: "Stale", timeout: time.Minute}
	in, r := p.fed(t)
	time.Sleep(time.Second)
	record := func(seconds int) (loop, never uint64) {
		dir := t.TempDir()
		if _, errs, code := heapcam(t, "record", "--sites", "exact", "--yes", "--for",
			strconv.Itoa(seconds)+"s", "--out", dir, strconv.Itoa(r.cmd.Process.Pid)); code != 0 {
			t.Fatalf("status %d: %s", code, errs)
		}
		dirs, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(dirs) != 1 {
			t.Fatalf("%v, %v", dirs, err)
		}
		return nodeSites(t, dirs[0])
	}
	// Until a loop has begun in code that was changed, which a busy machine takes longer for.
	for i := range 3 {
		loop, never := record(8)
		t.Logf("before: %d of the loop, %d of others", loop, never)
		if never > 0 || (i == 2 && loop < 1000) {
			t.Fatalf("%d nodes of the loop, %d of code that never ran; %s", loop, never, tail(r.stderr.String()))
		}
		if loop >= 1000 {
			break
		}
	}
	if _, err := in.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	await(t, "classes", func() bool { return strings.Contains(r.stdout.String(), "defined") })
	loop, never := record(6)
	if t.Logf("after: %d of the loop, %d of others", loop, never); never > 0 {
		t.Errorf("%d nodes of the loop, %d of code that never ran", loop, never)
	}
	if _, err := in.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
}

// TestExactSitesAgain has the classes of one JVM changed for many recordings. HotSpot appends the constants of a class
// to those of its last version, and the program has one whose constants are never equal to those that are there. After
// eight recordings the probe changes no classes any more.
func TestExactSitesAgain(t *testing.T) {
	tiers.Gate(t, "exact sites of one JVM many times")
	t.Parallel()
	p := program{major: 17, gc: "Serial", heap: "64m", main: "Nans", timeout: time.Minute}
	in, r := p.fed(t)
	await(t, "the class", func() bool { return strings.Contains(r.stdout.String(), "ready") })
	const refused = "changed for 8 recordings"
	for i := range 9 {
		if i == 8 && strings.Contains(r.stderr.String(), refused) {
			t.Error("refused too early")
		}
		if _, errs, code := heapcam(t, "record", "--sites", "exact", "--yes", "--for", "200ms", "--out", t.TempDir(),
			strconv.Itoa(r.cmd.Process.Pid)); code != 0 || strings.Contains(errs, stillLoaded) {
			t.Fatalf("recording %d: status %d: %s", i+1, code, errs)
		}
	}
	if !strings.Contains(r.stderr.String(), refused) {
		t.Error(tail(r.stderr.String()))
	}
	if _, err := in.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
}

// stillLoaded is a part of what record says of a JVM that does not answer.
const stillLoaded = "the JVM did not confirm"

// nodeSites counts the nodes of Stale that live at the end by whether they have the site of its loop or one of code
// that never ran.
func nodeSites(t *testing.T, dir string) (loop, never uint64) {
	t.Helper()
	type group struct {
		Name     string  `json:"key"`
		Samples  uint64  `json:"samples"`
		Children []group `json:"children"`
	}
	var g struct {
		Tree group `json:"tree"`
	}
	heapcamJSON(t, &g, "group", "--by", "type,site(1)", dir)
	for _, l := range g.Tree.Children {
		for _, s := range l.Children {
			switch {
			case !strings.Contains(l.Name, "Stale$Node"):
			case strings.Contains(s.Name, "Stale.loop"):
				loop += s.Samples
			case strings.Contains(s.Name, "Never"):
				never += s.Samples
			}
		}
	}
	return loop, never
}

// exactSites counts the arrays that live at the end by whether they have the site of their length.
func exactSites(t *testing.T, dir string) (right, wrong, all uint64) {
	t.Helper()
	for n, of := range sitesByLength(t, dir) {
		if n < 20 || n > 31 {
			continue
		}
		all += uint64(of.all)
		for name, samples := range of.sites {
			switch {
			case strings.Contains(name, fmt.Sprintf("Exact.make%d(", n-20)):
				right += uint64(samples)
			case strings.Contains(name, "Exact.make"):
				wrong += uint64(samples)
			}
		}
	}
	return right, wrong, all
}

// TestExactSitesOwnLoaders demands that the code that is put into classes calls no class loader of the program: that
// may not know the helper class, or wait for a lock.
func TestExactSitesOwnLoaders(t *testing.T) {
	tiers.Gate(t, "exact sites and class loaders of the program")
	t.Parallel()
	for _, flag := range [][]string{{"--sites", "exact"}, {"--drag", "app"}} {
		for _, major := range parts(t, 17, 25) {
			t.Run(fmt.Sprintf("%s/%d", flag[0], major), func(t *testing.T) {
				t.Parallel()
				p := program{major: major, gc: "Serial", heap: "64m", main: "OwnLoaders", flags: flag,
					timeout: time.Minute}
				r := p.start(t)
				r.finish(t)
				if out := r.stdout.String(); strings.TrimSpace(out) != "done" {
					t.Errorf("%s%s", out, r.stderr.String())
				}
				if flag[0] == "--sites" && !strings.Contains(r.stderr.String(), "2 classes were left as they are") {
					t.Error(tail(r.stderr.String()))
				}
			})
		}
	}
}
