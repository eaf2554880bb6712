package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// besides are programs and JVM options that exact sites have to live with. prepare compiles to dir and gives the
// options of the JVM.
var besides = []struct {
	name, main string
	major      int
	gc         string
	prepare    func(t *testing.T, home, dir string) (opts []string)
}{
	{"hidden classes, records, lambdas", "beside.Beside", 17, "Parallel", besideJava},
	{"compact headers", "beside.Beside", 25, "G1", func(t *testing.T, home, dir string) []string {
		return append(besideJava(t, home, dir), "-XX:+UseCompactObjectHeaders")
	}},
	{"virtual threads", "beside.Beside", 25, "Parallel", besideJava},
	{"JFR", "beside.Beside", 25, "Serial", func(t *testing.T, home, dir string) []string {
		return append(besideJava(t, home, dir), "-XX:StartFlightRecording:settings=profile,filename="+
			filepath.Join(dir, "x.jfr"))
	}},
	{"another agent", "beside.Beside", 17, "G1", func(t *testing.T, home, dir string) []string {
		opts := besideJava(t, home, dir)
		manifest := filepath.Join(dir, "manifest")
		text := []byte("Premain-Class: Hook\nCan-Retransform-Classes: true\n")
		if err := os.WriteFile(manifest, text, 0o600); err != nil {
			t.Fatal(err)
		}
		jar := filepath.Join(dir, "hook.jar")
		tooling(t, filepath.Join(home, "bin", "javac"), "-d", filepath.Join(dir, "hook"), "testdata/beside/Hook.java")
		tooling(t, filepath.Join(home, "bin", "jar"), "cfm", jar, manifest, "-C", filepath.Join(dir, "hook"), ".")
		return append(opts, "-javaagent:"+jar)
	}},
	{"an archive of classes", "beside.Beside", 17, "Serial", func(t *testing.T, home, dir string) []string {
		opts := besideJava(t, home, dir)
		jar, archive := filepath.Join(dir, "x.jar"), filepath.Join(dir, "x.jsa")
		tooling(t, filepath.Join(home, "bin", "jar"), "cf", jar, "-C", filepath.Join(dir, "classes"), ".")
		tooling(t, filepath.Join(home, "bin", "java"), "-XX:ArchiveClassesAtExit="+archive, "-cp", jar, "beside.Beside",
			"1000")
		return append(opts, "-XX:SharedArchiveFile="+archive, "-cp", jar)
	}},
	{"a module", "beside/beside.Beside", 17, "Parallel", func(t *testing.T, home, dir string) []string {
		tooling(t, filepath.Join(home, "bin", "javac"), "-d", filepath.Join(dir, "classes"),
			"testdata/beside/module-info.java", "testdata/beside/Beside.java")
		return []string{"-p", filepath.Join(dir, "classes"), "-m"}
	}},
	{"Kotlin", "KotlinKt", 17, "Parallel", language("kotlinc", "kotlin-stdlib.jar", "Kotlin.kt")},
	{"Scala", "Beside60", 17, "G1", language("scalac", "scala-library.jar", "Scala.scala")},
	{"Groovy", "Beside70", 17, "Serial", language("groovyc", "groovy-all.jar", "Groovy.groovy")},
}

// besideSites names a part of the method that allocates the arrays of a length. Those of length 42 are from a hidden
// class, which the JVM shows to no agent: only samples know their site.
var besideSites = map[int]string{
	40: "Beside.make40(", 41: "Beside.lambda$run$", 42: "Hidden.make(", 43: "Beside$Box.<init>(",
	44: "Beside$Kind$1.make(", 45: "Beside$Maker.other(",
	50: "KotlinKt.make50(", 51: "KotlinKt$main$f$1.invoke(", 52: "KotlinKt.main(",
	60: "Beside60$.make60(", 61: "Beside60$$anonfun$", 62: "Beside60$$anonfun$",
	70: "Beside70.make70(", 71: "Beside70$_main_closure1.doCall(",
}

func tooling(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%.1000s", name, args, err, out)
	}
}

func besideJava(t *testing.T, home, dir string) []string {
	t.Helper()
	tooling(t, filepath.Join(home, "bin", "javac"), "-d", filepath.Join(dir, "classes"), "testdata/beside/Beside.java")
	return []string{"-cp", filepath.Join(dir, "classes")}
}

// language compiles a program of another language, with Debian's compiler.
func language(compiler, library, source string) func(t *testing.T, home, dir string) []string {
	return func(t *testing.T, home, dir string) []string {
		t.Helper()
		if !tiers.Full() {
			t.Skipf("not run: %s (make test-full)", compiler)
		}
		if _, err := exec.LookPath(compiler); err != nil {
			t.Skipf("not run: %s (apt-get install kotlin scala groovy)", compiler)
		}
		out := filepath.Join(dir, "classes")
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("JAVA_HOME", home)
		tooling(t, compiler, "-d", out, filepath.Join("testdata", "beside", source))
		return []string{"-cp", out + ":/usr/share/java/" + library}
	}
}

// TestExactSitesBeside: beside other tools, and in classes of other compilers, the JVM's verifier takes each changed
// class, the program ends as it does without, and most arrays have the site that made them, none another.
func TestExactSitesBeside(t *testing.T) {
	tiers.Gate(t, "exact sites beside other tools and in other languages")
	for _, c := range parts(t, besides...) {
		t.Run(c.name, func(t *testing.T) {
			opts := c.prepare(t, jdk(t, c.major), t.TempDir())
			args := []string{"6000000"}
			if c.name == "virtual threads" {
				args = append(args, "virtual")
			}
			p := program{major: c.major, gc: c.gc, heap: "300m", main: c.main, args: args, bare: true,
				// No full collection, and no eden that is given back: after either, no site is known.
				opts: append([]string{"-Xverify:all", "-Xmn24m", "-XX:MetaspaceSize=128m",
					"-XX:-UseAdaptiveSizePolicy"}, opts...),
				flags: []string{"--sites", "exact"}, limit: "256MiB"}
			r := p.start(t)
			r.finish(t)
			out := r.stdout.String() + r.stderr.String()
			if !strings.Contains(out, "done\n") || strings.Contains(out, "VerifyError") ||
				strings.Contains(out, "Exception") {
				t.Fatalf("%.3000s", out)
			}
			dir := r.recorded(t).dir
			verify(t, dir, 1)
			seen := 0
			for length, of := range sitesByLength(t, dir) {
				want := besideSites[length]
				if want == "" || of.all < 100 {
					continue
				}
				seen++
				right := 0.0
				for name, n := range of.sites {
					switch {
					case strings.Contains(name, want):
						right += n
					case strings.Contains(name, "Beside") || strings.Contains(name, "Kotlin"):
						t.Errorf("%g of length %d are of %s", n, length, name)
					}
				}
				t.Logf("length %d: %g of %g are of %s", length, right, of.all, want)
				if right < 0.9*of.all && length != 42 {
					t.Errorf("only %g of %g arrays of length %d have their site: %v", right, of.all, length, of.sites)
				}
			}
			if seen < 2 {
				t.Errorf("arrays of %d lengths are alive", seen)
			}
		})
	}
}

type ofLength struct {
	all   float64
	sites map[string]float64 // samples by innermost frame
}

// sitesByLength groups the live arrays at the end by length, and these by innermost frame.
func sitesByLength(t *testing.T, dir string) map[int]ofLength {
	t.Helper()
	by := map[int]ofLength{}
	for _, l := range groups(t, dir, "length,site(1)") {
		n, err := strconv.Atoi(strings.ReplaceAll(l.Name, ",", ""))
		if err != nil {
			continue
		}
		x := ofLength{l.Objects, map[string]float64{}}
		for _, s := range l.Children {
			x.sites[s.Name] += float64(s.Samples)
		}
		by[n] = x
	}
	return by
}

// group is a node of `heapcam group --json`.
type group struct {
	Name     string  `json:"key"`
	Objects  float64 `json:"objects"`
	Samples  uint64  `json:"samples"`
	Children []group `json:"children"`
}

func groups(t *testing.T, dir, by string) []group {
	t.Helper()
	var g struct {
		Tree group `json:"tree"`
	}
	heapcamJSON(t, &g, "group", "--by", by, dir)
	return g.Tree.Children
}

// sitesOfType gives the innermost frames of the objects of a type, at the end of a recording.
func sitesOfType(t *testing.T, dir, name string) []group {
	t.Helper()
	for _, g := range groups(t, dir, "type,site(1)") {
		if g.Name == name {
			return g.Children
		}
	}
	return nil
}
