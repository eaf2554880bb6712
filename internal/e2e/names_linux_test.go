package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStableNames runs a program that allocates through generated classes and native methods twice, with others of the
// former first in the second run: the same code gives the same sites, without any address or counter, and the VM's own
// names stay in vm_class.
func TestStableNames(t *testing.T) {
	t.Parallel()
	odd := regexp.MustCompile(`0x[0-9a-f]|\$\$Lambda.*[0-9]|\$Proxy[0-9]|jdk\.proxy[0-9]|Accessor[0-9]|LambdaForm.*/`)
	majors := []int{17}
	if full {
		majors = append(majors, 25)
	} else {
		t.Log("not run: JDK 25 (HEAPCAM_FULL=1)")
	}
	for _, major := range majors {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			var runs []map[string]uint64
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
			for _, skip := range []string{"0", "7"} {
				p := program{major: major, gc: "Serial", main: "Names", args: []string{skip, listed},
					flags: []string{"--sampling", "0", "--sampling-max-overhead", "0%"}}
				r := p.start(t)
				r.finish(t)
				var h struct {
					histogramReply
					Sites []struct {
						Class   string  `json:"class"`
						Site    []frame `json:"site"`
						Samples uint64  `json:"samples"`
					} `json:"sites"`
				}
				dir := r.recorded(t).dir
				heapcamJSON(t, &h, "histogram", "--sites", dir)
				sites, seen, vm := map[string]uint64{}, map[string]bool{}, 0
				for _, c := range h.Classes {
					if c.VMClass != "" {
						vm++
					}
					if odd.MatchString(c.Class) {
						t.Errorf("class %s", c.Class)
					}
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
						if name := f.Class + "." + f.Method; f.Native && line == 0 && s.Samples >= 450 &&
							natives[name] == s.Class {
							seen[name] = true
						}
						if odd.MatchString(f.Class) {
							t.Errorf("frame %s.%s", f.Class, f.Method)
						}
					}
					if own && s.Samples >= 450 { // those of the loop
						sites[key] = 450 // or more: which object is the first to be sampled is chance
					}
				}
				if vm == 0 {
					t.Error("no vm_class")
				}
				for name := range natives {
					if !seen[name] {
						t.Errorf("no site with the native frame %s of %s", name, natives[name])
					}
				}
				if text, _, _ := heapcam(t, "histogram", "--sites", "--top", "0", dir); !strings.Contains(text,
					"java.lang.Object.clone(native)") {
					t.Error("no site reads java.lang.Object.clone(native)")
				}
				runs = append(runs, sites)
			}
			if len(runs[0]) < 5 || !maps.Equal(runs[0], runs[1]) {
				t.Errorf("%d sites\n%v\n%v", len(runs[0]), runs[0], runs[1])
			}
		})
	}
}
