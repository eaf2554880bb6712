package e2e

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/trace/references"
)

//go:embed native/tags.c
var tagsLibrary string

// What Dying plants, and how it is reached then.
var planted = map[string]graph.Level{
	"Dead": graph.Unreached, "DeadRing": graph.Unreached, "WeaklyHeld": graph.Weakly, "PhantomHeld": graph.Weakly,
	"StronglyHeld": graph.Kept, "SoftlyHeld": graph.Kept, "Final": graph.Kept,
	"Local": graph.Kept, "OnStack": graph.Kept, "Global": graph.Kept, "WeakGlobal": graph.Unreached,
}

// TestDead has JVMs whose threads all wait list their references, and then collect all garbage. JVMTI has tagged all
// objects by their addresses before. Objects that are held in one way alone are called what that way says. No object
// that a listing calls dead survives the collection, and each listing is complete. Full tests have 102 rounds.
func TestDead(t *testing.T) {
	tiers.Gate(t, "objects called dead and the collection that follows")
	t.Parallel()
	rounds := 2
	if full {
		rounds = 17
	}
	eachPair(t, []int{17, 25}, collectors, func(t *testing.T, major int, gc string) {
		listings, survivors := collected(t, major, gc, rounds)
		var sum deaths
		for i, l := range listings {
			if len(l.Missing) != 0 {
				t.Errorf("missing: %q", l.Missing)
			}
			sum.hold(t, l, survivors[i])
		}
		t.Logf("%d rounds: %+v", rounds, sum)
	})
	t.Run("virtual", func(t *testing.T) {
		listings, survivors := collected(t, 25, "G1", 2, "virtual")
		var sum deaths
		for i, l := range listings {
			if len(l.Missing) != 0 {
				t.Errorf("missing: %q", l.Missing)
			}
			sum.hold(t, l, survivors[i])
		}
	})
}

// collected gives a listing of each round, and the addresses in it of what survived the collection that followed.
func collected(t *testing.T, major int, gc string, rounds int, more ...string) ([]*references.Listing,
	[]map[uint64]bool,
) {
	t.Helper()
	home := jdk(t, major)
	lib := compiled(t, "libtags.so", tagsLibrary, "-I"+filepath.Join(home, "include"),
		"-I"+filepath.Join(home, "include", "linux"))
	d := newDaemon(t)
	d.start(t)
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	files := filepath.Join(t.TempDir(), "survivors")
	p := program{major: major, gc: gc, heap: "128m", main: "Dying", args: append([]string{lib, files}, more...),
		opts: []string{d.withProbe(t, "")}, stdin: in}
	r := p.plain(t)
	in.Close()
	await(t, "the program is ready", func() bool { return strings.Contains(r.stdout.String(), "ready") })
	awaitSession(t, d)
	var got referencesReply
	for round := range rounds {
		for _, c := range "fts" {
			if c == 's' {
				// In a row of full collections the probe takes none for some seconds.
				await(t, "a reference listing", func() bool {
					out, _, code := heapcam(t, "references", "--json", "--max-reference-pause", "20s", "--socket",
						d.sock, r.pidText())
					return code == 0 && json.Unmarshal([]byte(out), &got) == nil
				})
				jcmd := filepath.Join(home, "bin", "jcmd")
				if out, err := exec.Command(jcmd, r.pidText(), "GC.run").CombinedOutput(); err != nil {
					t.Fatalf("jcmd: %v\n%s", err, out)
				}
			}
			fmt.Fprintf(w, "%c", c)
			did := fmt.Sprintf("did %c%d\n", c, round+1)
			await(t, did, func() bool { return strings.Contains(r.stdout.String(), did) })
		}
	}
	fmt.Fprint(w, "e")
	r.wait(t)
	d.stop(t)
	all, of := referenceListings(t, got.Dir)
	if len(all) != rounds || of.torn != 0 {
		t.Fatalf("%d listings, %d torn, %d refused", len(all), of.torn, of.refused)
	}
	survivors := make([]map[uint64]bool, rounds)
	for i := range survivors {
		b, err := os.ReadFile(files + fmt.Sprint(i+1))
		if err != nil {
			t.Fatal(err)
		}
		survivors[i] = map[uint64]bool{}
		for line := range strings.Lines(string(b)) {
			var a int64
			fmt.Sscan(line, &a)
			survivors[i][uint64(a)] = true
		}
	}
	return all, survivors
}

// deaths counts objects over rounds.
type deaths struct{ objects, kept, weakly, dead, survived, weaklySurvived int }

// hold holds one listing against what survived.
func (d *deaths) hold(t *testing.T, l *references.Listing, survivors map[uint64]bool) {
	t.Helper()
	levels, err := graph.Levels(l)
	if err != nil {
		t.Fatal(err)
	}
	address := func(i int) uint64 { return l.Base + uint64(l.Addr[i])*8 }
	finalized := 0
	found, wrong, left := map[string]int{}, map[string]int{}, map[string]int{}
	for i, level := range levels {
		d.objects++
		lives := survivors[address(i)]
		name := l.Shape(i).Name
		switch level {
		case graph.Kept:
			d.kept++
		case graph.Weakly:
			d.weakly++
			if lives {
				d.weaklySurvived++
				wrong["weakly "+name]++
			}
		case graph.Unreached:
			d.dead++
			if lives {
				d.survived++
				left[name]++
			}
		}
		plant, ok := strings.CutPrefix(name, "Dying$")
		want, told := planted[plant]
		if !ok || !told {
			continue
		}
		if found[plant]++; plant == "Final" && level == graph.Unreached {
			finalized++ // in a round before
		} else if level != want {
			wrong[fmt.Sprintf("%s is %d, not %d", plant, level, want)]++
		}
	}
	for name, n := range left {
		t.Errorf("%d objects of %s were called dead, and survived", n, name)
	}
	for _, k := range slices.Sorted(maps.Keys(wrong)) {
		t.Errorf("%s: %d", k, wrong[k])
	}
	if found["Final"]-finalized < 20 {
		t.Errorf("%d of %d objects with a finalizer are dead", finalized, found["Final"])
	}
	t.Logf("planted: %v", found)
}
