package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// nameSites is what a run of Names recorded: live samples by site, those of the loop apart, and which of the native
// methods are in the stack of what they are to allocate.
type nameSites struct {
	all, loop map[string]uint64
	natives   map[string]uint64 // samples by method
	lost      uint64            // samples that the recording says were lost
}

// odd is what changes from run to run in a name of the JVM.
var odd = regexp.MustCompile(`0x[0-9a-f]|\$\$Lambda.*[0-9]|\$Proxy[0-9]|jdk\.proxy[0-9]|Accessor[0-9]|LambdaForm.*/`)

// loopSamples are what a site of the loop has at least: 500 objects, but for those of reflection before it makes code
// of its own, after 15 calls. Every object is a sample, so only samples that were lost are missing.
const loopSamples = 484

// runNames runs Names, and again if more than a few samples were lost: of a machine that is busy the probe drops what
// nobody has fetched in time, and says so.
func runNames(t *testing.T, major int, skip, folder string, natives map[string]string) (n nameSites) {
	for range 4 {
		p := program{major: major, gc: "Serial", main: "Names", args: []string{skip, folder},
			flags: []string{"--sampling", "0", "--sampling-max-overhead", "0%", "--emergency", "off",
				"--max-sync-pause", "10s"}} // a busy machine takes long to list
		r := p.start(t)
		r.finish(t)
		dir := r.recorded(t).dir
		var rep reportReply
		heapcamJSON(t, &rep, "report", dir)
		// Sites are those that live after the last collection whose objects are known: that must be the one at the end.
		if k := len(rep.Collections); k == 0 || !rep.Collections[k-1].Synced {
			t.Fatalf("the last collection was not listed: %+v", rep.Collections)
		}
		n = namesOf(t, dir, natives)
		if n.lost = rep.LostSamples; n.lost < loopSamples/2 {
			return n
		}
		t.Logf("%d samples were lost: once more", n.lost)
	}
	t.Fatal("too many samples were lost in each run to compare sites")
	return n
}

// namesOf reads the sites of a recording of Names.
func namesOf(t *testing.T, dir string, natives map[string]string) nameSites {
	n := nameSites{all: map[string]uint64{}, loop: map[string]uint64{}, natives: map[string]uint64{}}
	var h struct {
		histogramReply
		Sites []struct {
			Class   string  `json:"class"`
			Site    []frame `json:"site"`
			Samples uint64  `json:"samples"`
		} `json:"sites"`
	}
	heapcamJSON(t, &h, "histogram", "--sites", dir)
	vm := 0
	for _, c := range h.Classes {
		if c.VMClass != "" {
			vm++
		}
		if odd.MatchString(c.Class) {
			t.Errorf("class %s", c.Class)
		}
	}
	if vm == 0 {
		t.Error("no vm_class")
	}
	for _, s := range h.Sites {
		key, own := s.Class, false
		for _, f := range s.Site {
			line := 0
			if f.Line != nil {
				line = *f.Line
			}
			key += fmt.Sprintf(" %s.%s:%d:%v", f.Class, f.Method, line, f.Native)
			own = own || f.Class == "Names" && f.Method == "main"
			if name := f.Class + "." + f.Method; f.Native && line == 0 && natives[name] == s.Class {
				n.natives[name] = max(n.natives[name], s.Samples)
			}
			if odd.MatchString(f.Class) {
				t.Errorf("frame %s.%s", f.Class, f.Method)
			}
		}
		n.all[key] = s.Samples
		if own && s.Samples >= loopSamples/2 {
			n.loop[key] = s.Samples
		}
	}
	if text, _, _ := heapcam(t, "histogram", "--sites", "--top", "0", dir); !strings.Contains(text,
		"java.lang.Object.clone(native)") {
		t.Error("no site reads java.lang.Object.clone(native)")
	}
	return n
}

// TestStableNames runs a program that allocates through generated classes and native methods twice, with others of the
// former first in the second run: the same code gives the same sites, without any address or counter, and the VM's own
// names stay in vm_class.
func TestStableNames(t *testing.T) {
	t.Parallel()
	majors := []int{17}
	if full {
		majors = append(majors, 25)
	} else {
		t.Log("not run: JDK 25 (HEAPCAM_FULL=1)")
	}
	for _, major := range majors {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			// Below which native frame the loop allocates what, from the JVM and from one of the JDK's libraries
			// through JNI.
			lists := map[int]string{17: "list", 25: "list0"}[major]
			natives := map[string]string{
				"java.lang.Object.clone":               "float[]",
				"java.lang.reflect.Array.newArray":     "boolean[]",
				"java.lang.Throwable.fillInStackTrace": "short[]",
				"java.lang.Class.forName0":             "double[]", // by Java code that it calls
				"java.io.UnixFileSystem." + lists:      "byte[]",
			}
			listed := t.TempDir()
			if err := os.WriteFile(filepath.Join(listed, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			runs := [2]nameSites{runNames(t, major, "0", listed, natives), runNames(t, major, "7", listed, natives)}
			for i, n := range runs {
				other := runs[1-i]
				for name := range natives {
					if got := n.natives[name]; got+n.lost < loopSamples {
						t.Errorf("run %d: %d samples at the native frame %s of %s, and %d were lost", i+1, got, name,
							natives[name], n.lost)
					}
				}
				for site, samples := range n.loop {
					// The first object of this thread that is sampled is chance.
					if samples >= loopSamples && other.all[site]+other.lost < loopSamples {
						t.Errorf("run %d has %d samples of a site, the other %d, of which %d were lost: %s", i+1,
							samples, other.all[site], other.lost, site)
					}
				}
			}
			if len(runs[0].loop) < 5 || t.Failed() {
				t.Errorf("sites of the loop:\n%v\n%v", runs[0].loop, runs[1].loop)
			}
		})
	}
}
