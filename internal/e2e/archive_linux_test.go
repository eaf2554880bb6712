package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sharedClasses starts Until with an option and gives 1 if its class comes from an archive.
func sharedClasses(t *testing.T, java, jar string, option string) int {
	t.Helper()
	out, err := exec.Command(java, "-Xlog:class+load", option, "-cp", jar, "Until").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "ArrayIndexOutOfBounds") { // it has no arguments
		t.Fatalf("%v\n%s", err, tail(string(out)))
	}
	n := 0
	for _, l := range strings.Split(string(out), "\n") {
		if strings.Contains(l, " Until source: shared objects file") {
			n++
		}
	}
	return n
}

// TestArchive has JVMs write archives of classes, which they refuse with an agent at their start: below `heapcam run`
// they do what they do without it, a JVM that is attached to is recorded and writes its archive.
func TestArchive(t *testing.T) {
	t.Parallel()
	for _, major := range someMajors(t.Name(), []int{17, 25}) {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			t.Parallel()
			java, dir := filepath.Join(jdk(t, major), "bin", "java"), t.TempDir()
			jar, end := filepath.Join(dir, "a.jar"), filepath.Join(dir, "end")
			if out, err := exec.Command(filepath.Join(filepath.Dir(java), "jar"), "cf", jar, "-C", classPath(t),
				".").CombinedOutput(); err != nil {
				t.Fatalf("jar: %v %s", err, out)
			}
			if err := os.WriteFile(end, nil, 0o600); err != nil { // Until ends at once
				t.Fatal(err)
			}
			n := 0
			run := func(want string, status int, env []string, args ...string) (archive string) {
				t.Helper()
				n++
				archive = filepath.Join(dir, fmt.Sprintf("%d.jsa", n))
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "ARCHIVE", archive)
				}
				c := exec.Command(tool, append([]string{"run", "--out", filepath.Join(dir, "rec"), "--"}, args...)...)
				c.Env = os.Environ()
				for _, e := range env {
					c.Env = append(c.Env, strings.ReplaceAll(e, "ARCHIVE", archive))
				}
				b, _ := c.CombinedOutput()
				out := string(b)
				if got := c.ProcessState.ExitCode(); got != status || strings.Count(out, "heapcam: ") != 1 ||
					!strings.Contains(out, want) {
					t.Errorf("%q: status %d, want %d\n%s", args, got, status, out)
				}
				return archive
			}
			until := []string{"-cp", jar, "Until", end, "100", "1"}
			const unrecorded = "heapcam: the command runs without being recorded: a JVM that writes a CDS archive ("
			a := run(unrecorded+"-XX:ArchiveClassesAtExit, in the command line)", 0, nil,
				append([]string{java, "-XX:ArchiveClassesAtExit=ARCHIVE"}, until...)...)
			if sharedClasses(t, java, jar, "-XX:SharedArchiveFile="+a) != 1 {
				t.Error("the archive is not used")
			}
			run(unrecorded+"-XX:ArchiveClassesAtExit, in JAVA_TOOL_OPTIONS)", 0,
				[]string{"JAVA_TOOL_OPTIONS=-XX:ArchiveClassesAtExit=ARCHIVE"}, append([]string{java}, until...)...)
			// its own status
			run(unrecorded+"-XX:ArchiveClassesAtExit, in the command line)", 1, nil, java,
				"-XX:ArchiveClassesAtExit=ARCHIVE",
				"-cp", jar, "Until")
			run("heapcam: recorded ", 0, nil, append([]string{java, "-XX:SharedArchiveFile=" + a}, until...)...)
			// Nobody sees it in a script: the JVM refuses, and heapcam says what it may be.
			script := filepath.Join(dir, "start")
			if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$@\" -XX:ArchiveClassesAtExit=$A -version\n"),
				0o700); err != nil {
				t.Fatal(err)
			}
			run("clear JAVA_TOOL_OPTIONS for it", 1, []string{"A=ARCHIVE"}, script, java)
			if major >= 19 {
				run(unrecorded+"-XX:+AutoCreateSharedArchive", 0, nil,
					append([]string{java, "-XX:+AutoCreateSharedArchive", "-XX:SharedArchiveFile=ARCHIVE"},
						until...)...)
			}
			if major >= 25 { // caches of classes ahead of time are written with the probe
				c := run("heapcam: recorded ", 0, nil,
					append([]string{java, "-XX:AOTCacheOutput=ARCHIVE"}, until...)...)
				if sharedClasses(t, java, jar, "-XX:AOTCache="+c) != 1 {
					t.Error("the cache is not used")
				}
			}
			if full {
				run(unrecorded+"-Xshare:dump", 0, nil, java, "-Xshare:dump", "-XX:SharedArchiveFile=ARCHIVE")
				run(unrecorded+"--generate-cds-archive", 0, nil, filepath.Join(filepath.Dir(java), "jlink"),
					"--add-modules",
					"java.base", "--generate-cds-archive", "--output", filepath.Join(dir, "image"))
			}

			d := newDaemon(t)
			d.start(t)
			end2, late := filepath.Join(dir, "end2"), filepath.Join(dir, "late.jsa")
			p := program{major: major, gc: "", heap: "64m",
				opts:    []string{"-XX:ArchiveClassesAtExit=" + late, "-Xlog:cds=off"},
				classes: jar, main: "Until", args: []string{end2, "2000", "12"}}
			r := p.plain(t)
			pid := child(t, r)
			recordedBy(t, d, r, pid, end2)
			if sharedClasses(t, java, jar, "-XX:SharedArchiveFile="+late) != 1 {
				t.Error("the archive of a JVM that was attached to is not used")
			}
		})
	}
}
