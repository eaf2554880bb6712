package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// unload is what is found of types in the files of a recording.
type unload struct {
	files     int
	head      int    // types at the head of the newest file that begins with a listing
	headBytes int    // of its definitions
	first     int    // types that the oldest file defines
	last      uint64 // highest id
}

// resolves reads each file of a recording alone: whatever names a type, loader, frame or thread must stand behind its
// definition. fresh: the recording of an agent that found in the ring what another one had got the definitions
// of.
func resolves(t *testing.T, dir string, fresh bool) (u unload) {
	t.Helper()
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	u.files = len(rec.Files)
	for i, f := range rec.Files {
		x := &definitions{t: t, types: trace.NewTypeTable(8), loaders: map[uint64]bool{0: true},
			frames: map[uint64]bool{0: true}, threads: map[uint64]bool{0: true}, used: map[uint64]bool{},
			methods: map[string]uint64{}}
		heads, bytes, head := 0, 0, true
		for b, err := range f.Blocks() {
			if err != nil { // the agent that wrote it was killed
				t.Logf("%s: %v", f.Name, err)
				break
			}
			if b.Kind == trace.KindDefs {
				d := x.define(f.Name, b)
				for _, ty := range d.Types {
					u.last = max(u.last, ty.ID)
				}
				if head {
					heads += len(d.Types)
					bytes += b.Size()
				}
				if i == 0 {
					u.first += len(d.Types)
				}
			}
			x.names(b)
			x.tokens(b)
			x.listed = x.listed || b.Kind == trace.KindSync
			if head && b.Kind == trace.KindSync {
				u.head, u.headBytes = heads, bytes
			}
			head = head && b.Kind != trace.KindSync && b.Kind != trace.KindEpoch && b.Kind != trace.KindSamples
		}
		for id := range x.used {
			x.need(x.loaders[id], "loader", id)
		}
		if len(x.wrong) > 0 && !fresh {
			t.Errorf("%s: not defined: %s", filepath.Join(filepath.Base(filepath.Dir(dir)), f.Name),
				strings.Join(x.wrong, ", "))
		}
	}
	return u
}

// definitions are those of one file, and what was named without one.
type definitions struct {
	t                        *testing.T
	types                    *trace.TypeTable
	loaders, frames, threads map[uint64]bool
	used                     map[uint64]bool   // loaders: one that an agent before received may come behind its type
	listed                   bool              // a listing has come
	methods                  map[string]uint64 // the first that says so
	wrong                    []string
}

func (x *definitions) need(ok bool, what string, id uint64) {
	if !ok && len(x.wrong) < 5 {
		x.wrong = append(x.wrong, fmt.Sprintf("%s %d", what, id))
	}
}

func (x *definitions) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// accessor is a class that the JVM makes to call a method by reflection. As many come and go as classes do.
var accessor = regexp.MustCompile(`Generated\w*Accessor\d`)

// define takes the definitions of a block. Methods of classes that are loaded again and again share their ids.
func (x *definitions) define(file string, b trace.Block) trace.Defs {
	d, err := trace.DecodeDefs(b)
	x.must(err)
	if len(d.GoneTypes)+len(d.GoneLoaders) > 0 {
		x.t.Errorf("%s tells what has gone", file)
	}
	x.must(x.types.DefineAll(d.Types))
	for _, l := range d.Loaders {
		x.loaders[l.ID] = true
	}
	for _, ty := range d.Types {
		x.used[ty.Loader] = true
	}
	for _, m := range d.Methods {
		id := m.ID
		m.ID = 0
		first, had := x.methods[fmt.Sprint(m)]
		if x.need(!had || first == id, "an id of its own of "+m.Class+"."+m.Name+": also", id); !had {
			x.methods[fmt.Sprint(m)] = id
		}
		x.need(!accessor.MatchString(m.Class), "method of a numbered class "+m.Class, id)
	}
	for _, fr := range d.Frames {
		x.need(x.frames[fr.Parent], "frame", fr.Parent)
		x.frames[fr.ID] = true
	}
	for _, th := range d.Threads {
		x.threads[th.ID] = true
	}
	return d
}

// names looks up what a block names.
func (x *definitions) names(b trace.Block) {
	switch b.Kind {
	case trace.KindMeta:
		m, err := trace.DecodeMeta(b)
		x.must(err)
		if m.HasJVM {
			x.types.SetAlign(m.JVM.Align)
		}
	case trace.KindSamples:
		ss, err := trace.DecodeSamples(b)
		x.must(err)
		for _, s := range ss {
			x.need(s.Type == 0 || x.types.Known(s.Type), "type of a sample", s.Type)
			x.need(x.frames[s.Frame], "frame of a sample", s.Frame)
			x.need(x.threads[s.Thread], "thread of a sample", s.Thread)
		}
	case trace.KindEpoch:
		e, err := trace.DecodeEpoch(b)
		x.must(err)
		for _, r := range e.Census {
			x.need(!x.listed || x.types.Known(r.Type), "type of the census", r.Type)
		}
	case trace.KindSync:
		y, err := trace.DecodeSync(b)
		x.must(err)
		for _, s := range y.Samples {
			x.need(x.frames[s.Frame], "frame of a live sample", s.Frame)
		}
	case trace.KindSummary:
		s, err := trace.DecodeSummary(b)
		x.must(err)
		for _, r := range s.Types {
			x.need(x.types.Known(r.Type), "type of a summary", r.Type)
		}
	}
}

// tokens reads the tokens of a block, which need the sizes of their types.
func (x *definitions) tokens(b trace.Block) {
	if b.Kind != trace.KindEpoch && b.Kind != trace.KindSync {
		return
	}
	x.must(trace.TokenBlobs(b, func(tag trace.Tag, _ int, tokens []byte) {
		var err error
		if tag == trace.TagBirths || tag == trace.TagList {
			l := trace.NewListTokens(tokens, x.types)
			for l.Next() {
			}
			err = l.Err()
		} else {
			w := trace.NewWalkTokens(tokens, x.types)
			for w.Next() {
			}
			err = w.Err()
		}
		if err != nil && len(x.wrong) < 5 {
			x.wrong = append(x.wrong, err.Error())
		}
	}))
}

// newestFile is the highest number of a ring file in dir.
func newestFile(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.hcr"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if k, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(f), ".hcr")); err == nil {
			n = max(n, k)
		}
	}
	return n
}

// TestUnload records a JVM that loads and drops classes all the time, with full collections in between, while its agent
// is killed and restarted. Each file has the definitions that it needs and few others. The probe removes old
// definitions from its log, and reuses places of its tables but no ids. The replay equals the listings. The probe
// checks that no object has a type that was freed (oracle=1).
func TestUnload(t *testing.T) {
	tiers.Gate(t, "classes that come and go for half a minute")
	needReader(t)
	// short, on 17: there methods that call by reflection are in numbered classes
	majors, gcs, depths, span := []int{25, 17}, []string{"G1"}, []string{"survivors"}, 5*time.Second
	if full {
		gcs, depths, span = collectors, []string{"survivors", "full"}, 8*time.Second
	}
	// a longer look at what the agent holds
	if d, err := time.ParseDuration(os.Getenv("HEAPCAM_UNLOAD_FOR")); err == nil {
		span = d
	}
	somePair(t, "TestUnload", majors, gcs, func(t *testing.T, major int, gc string) {
		for _, depth := range depths {
			t.Run(depth, func(t *testing.T) {
				limit := "2MiB"
				if depth == "full" {
					limit = "8MiB"
				}
				d := newDaemon(t, "--max-trace-size", limit, "--emergency", "off", "--depth", depth,
					"--max-sync-pause", "0") // whole listings
				d.start(t)
				file := filepath.Join(t.TempDir(), "end")
				p := program{major: major, gc: gc, heap: "64m", main: "ClassChurn", args: []string{file, "5000", "20"},
					timeout: 10 * time.Minute,
					opts: []string{d.option(t) + ",oracle=1,first_type=1048000", "-XX:MetaspaceSize=8m",
						"-XX:MaxMetaspaceSize=24m",
						"-XX:TieredStopAtLevel=1"}}
				r := p.plain(t)
				await(t, "its pid", func() bool { return r.pid() > 0 })
				await(t, "a recording", func() bool { return len(d.recordings()) == 1 })
				for range 3 {
					time.Sleep(span / 3)
					if out, err := exec.Command(filepath.Join(jdk(t, major), "bin", "jcmd"), r.pidText(),
						"GC.run").CombinedOutput(); err != nil {
						t.Fatalf("jcmd: %v\n%s", err, out)
					}
				}
				d.kill()
				time.Sleep(300 * time.Millisecond)
				before := newestFile(t, d.recordings()[0])
				d.start(t)
				time.Sleep(span)
				// on a busy machine files last longer
				await(t, "two more files", func() bool { return newestFile(t, d.recordings()[0]) > before+1 })
				rss := d.takes(t).rss
				d.kill()
				old := d.recordings()[0]
				d.out = filepath.Join(t.TempDir(), "fresh") // here nothing is known but what the probe tells again
				d.start(t)
				await(t, "a recording", func() bool { return len(d.recordings()) == 1 })
				time.Sleep(span / 2)
				r.end(t, file)
				d.stop(t)
				// Parallel may give memory back
				told := regexp.MustCompile("heapcam: proven sites: [0-9].*").ReplaceAllString(r.stderr.String(), "")
				if s := told; strings.Contains(s, "reported as unloaded") || gc != "Parallel" &&
					strings.Contains(s, "heapcam: ") {
					t.Errorf("the probe says: %s", tail(s))
				}
				if strings.Contains(d.stderr.String(), "the store refused a write") {
					t.Error("the log blames the disk for what the probe wrote before it described its JVM again")
				}
				a, b := resolves(t, old, false), resolves(t, d.recordings()[0], true)
				loaded := int(b.last) - 1048000
				t.Logf("%d classes; %d types of %d bytes at the head of the newest file, %d defined again for a new "+
					"agent, agent %d "+
					"KiB: %+v %+v", loaded, b.head, b.headBytes, b.first, rss, a, b)
				if loaded < 5000 || a.files < 2 || a.head == 0 {
					t.Fatalf("%d classes, %d files: the test says nothing", loaded, a.files)
				}
				if b.last < 1<<20 {
					t.Errorf("ids end at %d: the probe's tables were not used again", b.last)
				}
				if a.head > loaded/3 || b.head > loaded/3 {
					t.Errorf("%d and %d types at the heads of files, of %d classes", a.head, b.head, loaded)
				}
				for _, dir := range []string{old, d.recordings()[0]} {
					verify(t, dir, 1)
					var h histogramReply
					heapcamJSON(t, &h, "histogram", dir)
					victims := uint64(0)
					for _, c := range h.Classes {
						if c.Class == "" || strings.Contains(c.Class, "?") {
							t.Errorf("a class without a name: %+v", c)
						}
						if strings.Contains(c.Class, "Victim") {
							victims += c.Objects
						}
					}
					if victims == 0 {
						t.Error("no object of a class that comes and goes is named")
					}
				}
			})
		}
	})
}
