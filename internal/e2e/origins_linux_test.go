package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
)

// siteLines gives the line of each comment "SITE name" of a program of java/.
func siteLines(t *testing.T, file string) map[string]int {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("java", file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for i, l := range strings.Split(string(src), "\n") {
		if m := regexp.MustCompile(`// SITE (\w+)`).FindStringSubmatch(l); m != nil {
			out[m[1]] = i + 1
		}
	}
	return out
}

type siteReply struct {
	Classes []struct {
		Class, Loader string
		Objects       uint64
	}
	Sites []struct {
		Class, Child string
		Site         []frame
		Samples      uint64
		Objects      uint64
	}
}

// at sums the rows of a class whose innermost frame is in class and line.
func (h *siteReply) at(class, in string, line int) (samples, objects uint64, rows int) {
	for _, s := range h.Sites {
		if s.Class == class && len(s.Site) > 0 && s.Site[0].Class == in && s.Site[0].Line != nil &&
			*s.Site[0].Line == line {
			samples, objects, rows = samples+s.Samples, objects+s.Objects, rows+1
		}
	}
	return samples, objects, rows
}

// eachMajor runs f on 17, and on 25 with HEAPCAM_FULL.
func eachMajor(t *testing.T, f func(t *testing.T, major int)) {
	majors := []int{17}
	if full {
		majors = append(majors, 25)
	} else {
		t.Log("not run: JDK 25 (HEAPCAM_FULL=1)")
	}
	for _, major := range majors {
		t.Run(fmt.Sprint(major), func(t *testing.T) { f(t, major) })
	}
}

// TestUnloadedSite: a site in a class that has been unloaded keeps its class, method and line through rotations, in
// each file alone too; two sites of one class at 1:9 are distinguished; two classes of one name are two rows with their
// loaders, in histogram, group and histories.
func TestUnloadedSite(t *testing.T) {
	t.Parallel()
	lines := siteLines(t, "Unloads.java")
	eachMajor(t, func(t *testing.T, major int) {
		p := program{major: major, gc: "Serial", main: "Unloads", args: []string{"14000", "4000"}, heap: "48m",
			limit: "1MiB",
			flags: []string{"--sampling", "4KiB", "--sampling-max-overhead", "0%"}}
		r := p.start(t)
		r.finish(t)
		if !strings.Contains(r.stdout.String(), "unloaded\n") {
			t.Fatal("the class was not unloaded")
		}
		rec := r.recorded(t)
		verify(t, rec.dir, 2)
		files, _ := filepath.Glob(filepath.Join(rec.dir, "*.hcr"))
		if len(files) < 2 || files[len(files)-1] < filepath.Join(rec.dir, "00000003.hcr") {
			t.Fatalf("too few rotations: %v", files)
		}
		alone := "" // the newest file that begins with a listing and goes on after it
		for _, f := range files {
			if _, _, code := heapcam(t, "histogram", f); code == 0 {
				alone = f
			}
		}
		if alone == "" || alone == files[0] {
			t.Fatalf("no file but the first opens alone: %v", files)
		}
		for _, from := range []string{rec.dir, alone} {
			var h siteReply
			heapcamJSON(t, &h, "histogram", "--sites", from)
			// An array is drawn with a probability of 0.99 (80 kB) and 0.86 (8 kB), and then has a weight of 1.01 and
			// 1.16: five deviations. Reflection calls the first fifteen times in another way than later, which are two
			// stacks.
			if n, _, rows := h.at("int[]", "Unloads$Gen", lines["gone"]); rows == 0 || rows > 2 || n < 35 || n > 40 {
				t.Errorf("%s: %d samples in %d rows of the class that was unloaded, want 40", from, n, rows)
			}
			for name, want := range map[string]float64{"few": 20, "many": 180} {
				_, n, rows := h.at("Unloads$Box[]", "Unloads", lines[name])
				if d := float64(n) - want; rows != 1 || d*d > 25*want*0.16 {
					t.Errorf("%s: %s: %d objects in %d rows, want %.0f", from, name, n, rows, want)
				}
			}
			rows := map[string]uint64{}
			for _, c := range h.Classes {
				if c.Class == "Unloads$Gen" {
					loader, _, _ := strings.Cut(c.Loader, " #")
					rows[loader] += c.Objects
				}
			}
			if len(rows) != 2 || rows["Unloads$First"] != 7 || rows["Unloads$Second"] != 3 {
				t.Errorf("%s: classes of one name by loader: %v", from, rows)
			}
		}
		for _, verb := range [][]string{{"group", "--by", "type, loader"}, {"history"}} {
			out, errs, code := heapcam(t, append(append(verb[:1:1], rec.dir, "--json"), verb[1:]...)...)
			if code != 0 || !strings.Contains(out, "Unloads$First #") || !strings.Contains(out, "Unloads$Second #") {
				t.Errorf("%v: status %d, the loaders are not reported\n%s", verb, code, errs)
			}
		}
	})
}

// TestOrigins: sites of what was allocated while a JVM was recorded survive the death of the agent; what is older than
// a recording, whether its JVM was recorded before or not, is from before the recording and has no site.
func TestOrigins(t *testing.T) {
	t.Parallel()
	needReader(t)
	lines := siteLines(t, "Origins.java")
	eachMajor(t, func(t *testing.T, major int) {
		d := newDaemon(t, "--max-trace-size", "64MiB", "--emergency", "off", "--sampling", "4KiB",
			"--sampling-max-overhead", "0%")
		d.start(t)
		p := program{major: major, gc: "Parallel", heap: "64m", main: "Origins"}
		in, r := p.fed(t)
		held := func(n int) {
			in.WriteString("\n")
			await(t, "objects", func() bool { return strings.Contains(r.stdout.String(), fmt.Sprintf("held %d\n", n)) })
		}
		recorded := func() (out []session.Status) {
			for _, s := range d.status(t).JVMs {
				if s.PID == r.pid() {
					out = append(out, s)
				}
			}
			slices.SortFunc(out, func(a, b session.Status) int { return a.Since.Compare(b.Since) })
			return out
		}
		await(t, "pid", func() bool { return r.pid() > 0 })
		attach := func() session.Status {
			if errs, code := d.attach(t, r.pidText()); code != 0 {
				t.Fatalf("attach: status %d: %s", code, errs)
			}
			await(t, "a collection", func() bool { s := recorded(); return len(s) > 0 && s[len(s)-1].LastGC > 1 })
			s := recorded()
			return s[len(s)-1]
		}
		held(0)
		first := attach()
		held(1)
		gc := recorded()[0].LastGC
		await(t, "its collection", func() bool { return recorded()[0].LastGC > gc })
		d.kill()
		time.Sleep(100 * time.Millisecond)
		d.start(t)
		await(t, "the recording to go on", func() bool { s := recorded(); return len(s) > 0 && s[0].LastGC > gc+1 })
		held(2)
		gc = recorded()[0].LastGC
		await(t, "its collection", func() bool { return recorded()[0].LastGC > gc+1 })
		if _, errs, code := heapcam(t, "detach", r.pidText(), "--socket", d.sock); code != 0 {
			t.Fatalf("detach: status %d: %s", code, errs)
		}
		await(t, "the end of the recording", func() bool { return recorded()[0].Phase.Over() })
		second := attach()
		if second.Dir == first.Dir {
			t.Fatal("one recording")
		}
		held(3)
		gc = recorded()[1].LastGC
		await(t, "its collection", func() bool { return recorded()[1].LastGC > gc+1 })
		in.WriteString("\n")
		if err := r.cmd.Wait(); err != nil || !strings.HasSuffix(r.stdout.String(), "done\n") {
			t.Fatal(err)
		}
		d.stop(t)
		for dir, sites := range map[string]map[string]bool{
			first.Dir:  {"Old": false, "First": true, "Later": true},
			second.Dir: {"Old": false, "First": false, "Later": false, "Last": true},
		} {
			verify(t, dir, 1)
			var h siteReply
			heapcamJSON(t, &h, "histogram", "--sites", dir)
			for name, known := range sites {
				class, before, wrong := "Origins$"+name+"[]", uint64(0), uint64(0)
				n, _, rows := h.at(class, "Origins", lines[name])
				for _, s := range h.Sites {
					if s.Class == class && s.Child == "(before the recording)" {
						before += s.Objects
					} else if s.Class == class && len(s.Site) > 0 {
						wrong += s.Objects
					}
				}
				switch {
				case known && (rows != 1 || n < 35 || n > 40 || before > 40-n):
					t.Errorf("%s: %s: %d samples in %d rows, %d before the recording; want 40 in one",
						filepath.Base(dir), name, n, rows, before)
				case !known && (before != 40 || wrong != 0):
					t.Errorf("%s: %s: %d before the recording, %d with a site; want 40 and none", filepath.Base(dir),
						name, before, wrong)
				}
			}
		}
	})
}

// fed starts a program as plain does, with an input to write to.
func (p *program) fed(t *testing.T) (*os.File, *running) {
	t.Helper()
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = in
	r := p.plain(t)
	in.Close()
	t.Cleanup(func() { w.Close() })
	return w, r
}
