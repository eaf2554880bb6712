package docs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/tiers"
)

// block is a fence of shell commands in a page. Kind is "" (run by make test), "full" (run by make test-full) or
// "elsewhere" (only looked at: it needs an installed service, a cluster, another host or another system; TestService of
// internal/systemd runs the verbs of the service).
type block struct {
	page, kind string
	line       int
	lines      []string
}

// blocks gives the fences of shell commands of a page in their order.
func blocks(t *testing.T, page string) (out []block) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var cur *block
	for i, l := range strings.Split(string(b), "\n") {
		switch {
		case strings.HasPrefix(l, "```") && cur != nil:
			if cur.kind != "text" {
				out = append(out, *cur)
			}
			cur = nil
		case strings.HasPrefix(l, "```"):
			lang, kind, _ := strings.Cut(strings.TrimPrefix(l, "```"), " ")
			if lang != "sh" {
				kind = "text"
			} else if kind != "" && kind != "full" && kind != "elsewhere" {
				t.Errorf("%s:%d: a fence of kind %q: write sh, sh full or sh elsewhere", page, i+1, kind)
			}
			cur = &block{page: page, kind: kind, line: i + 1}
		case cur != nil:
			cur.lines = append(cur.lines, l)
		}
	}
	return out
}

// tool gives the program under test, or skips.
func tool(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("HEAPCAM_BIN")
	if bin == "" {
		bin = filepath.Join(root, "bin", "heapcam")
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		t.Skip("not run: the commands of the documents (no bin/heapcam: make build)")
	}
	return bin
}

var (
	call   = regexp.MustCompile(`(?:^|[|;&(] *|-- |sudo |timeout \S+ )(?:\S*/)?heapcam((?: [^|>#;&)\n]*)?)`)
	inline = regexp.MustCompile("`(heapcam [^`\n]+)`")
	flags  = regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]*)`)
)

// TestDocumentedVerbs: each verb and flag of heapcam that a page shows, in a fence or within a sentence, exists.
func TestDocumentedVerbs(t *testing.T) {
	bin, helps, seen := tool(t), map[string]string{}, 0
	help := func(verb string) string {
		if h, ok := helps[verb]; ok {
			return h
		}
		out, err := exec.Command(bin, append(strings.Fields(verb), "--help")...).CombinedOutput()
		if err != nil || strings.HasPrefix(string(out), "heapcam is ") {
			out = nil
		}
		helps[verb] = string(out)
		return helps[verb]
	}
	check := func(where, arguments string) {
		arguments, _, _ = strings.Cut(arguments, " -- ")
		words := strings.Fields(arguments)
		if len(words) == 0 || !regexp.MustCompile(`^[a-z][a-z-]+$`).MatchString(words[0]) || words[0] == "help" {
			return
		}
		seen++
		text := help(words[0])
		if text == "" {
			t.Errorf("%s: there is no verb %q", where, words[0])
			return
		}
		if len(words) > 1 && strings.Contains(text, "\nVerbs:\n") {
			text += help(words[0] + " " + words[1])
		}
		for _, f := range flags.FindAllStringSubmatch(arguments, -1) {
			if !strings.Contains(text, f[1]) {
				t.Errorf("%s: heapcam %s has no flag %s", where, words[0], f[1])
			}
		}
	}
	for _, page := range documents(t) {
		if filepath.Ext(page) != ".md" || strings.Contains(page, "/benchmarks/") {
			continue // what was measured keeps the commands of its day
		}
		for _, b := range blocks(t, page) {
			for i, l := range b.lines {
				for _, m := range call.FindAllStringSubmatch(l, -1) {
					check(fmt.Sprintf("%s:%d", page, b.line+i+1), m[1])
				}
			}
		}
		text, _ := os.ReadFile(page)
		for _, m := range inline.FindAllStringSubmatch(string(text), -1) {
			check(page, strings.TrimPrefix(m[1], "heapcam"))
		}
	}
	if seen < 50 {
		t.Errorf("only %d commands were found", seen)
	}
}

// TestDocumentedCommands runs the commands of the pages, each page in a shell and a folder of its own. Pages that ask
// the agent, or name a JVM to record, run one after the other, the others side by side: all start JVMs of one name.
func TestDocumentedCommands(t *testing.T) {
	tiers.Gate(t, "the commands of the documentation")
	bin := tool(t)
	full := os.Getenv("HEAPCAM_FULL") != ""
	shop := fixture(t, bin)
	commands := 0
	asking, reading := map[string]string{}, map[string]string{}
	for _, page := range documents(t) {
		var script strings.Builder
		for _, b := range blocks(t, page) {
			if b.kind == "elsewhere" || b.kind == "full" && !full {
				continue
			}
			commands += shell(&script, b)
		}
		name, _ := filepath.Rel(root, page)
		switch {
		case script.Len() == 0:
		case full || agents.MatchString(script.String()):
			asking[name] = script.String()
		default:
			reading[name] = script.String()
		}
	}
	t.Run("reading", func(t *testing.T) {
		for name, script := range reading {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				shop.run(t, script, full)
			})
		}
	})
	shop.must(t, time.Minute, `until heapcam status --json |
		jq -e '.jvms[] | select(.name == "LeakyShop") | .collections >= 5 and .sync_points >= 1'; do sleep 0.2; done`)
	for _, name := range slices.Sorted(maps.Keys(asking)) {
		t.Run(name, func(t *testing.T) { shop.run(t, asking[name], full) })
	}
	if !full {
		t.Log("not run: commands of the documents that need root or minutes (make test-full)")
	}
	t.Logf("%d commands", commands)
	if commands < 20 {
		t.Errorf("only %d commands were found", commands)
	}
}

var (
	status  = regexp.MustCompile(`\s*#.*exit (?:status|code) (\d+).*$`)
	agents  = regexp.MustCompile(`heapcam (?:status|incidents|freeze|pause|resume|attach|detach|cost|doctor|record)\b`)
	endless = regexp.MustCompile(`^(?:bin/)?heapcam (?:view|agent)\b|--watch\b`)
)

// shell adds the commands of a block to a script: each with its line before it, and its status checked after it.
func shell(out *strings.Builder, b block) (n int) {
	joined := strings.ReplaceAll(strings.Join(b.lines, "\n"), "\\\n", " ")
	for _, l := range strings.Split(joined, "\n") {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		n++
		want := "0"
		if m := status.FindStringSubmatch(l); m != nil {
			want, l = m[1], status.ReplaceAllString(l, "")
		}
		if endless.MatchString(l) { // it would run until somebody ends it
			l, want = "timeout -s INT 5 "+l, "0|124|130"
		}
		where := quote(fmt.Sprintf("%s:%d: %s", filepath.Base(b.page), b.line, l))
		fmt.Fprintf(out, "rc=0; { %s\n} || rc=$?\n", l)
		fmt.Fprintf(out, "case $rc in %s) ;; *) echo %s: status $rc; exit 1;; esac\n", want, where)
	}
	return n
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// shop is what the commands of the documents find: recordings, a jar, and an agent that records a JVM.
type shop struct {
	dir string // holds what each page gets a link of
	env []string
}

// fixture makes it. A page's folder links to its files.
func fixture(t *testing.T, bin string) *shop {
	t.Helper()
	home, err := exec.Command(filepath.Join(root, "tools/jdk-home")).Output()
	if err != nil {
		t.Skip("not run: the commands of the documents (no JDK: tools/setup)")
	}
	jdk := filepath.Join(strings.TrimSpace(string(home)), "bin")
	s := &shop{dir: t.TempDir()}
	path := filepath.Dir(bin) + ":" + jdk + ":" + os.Getenv("PATH")
	s.env = append(os.Environ(), "PATH="+path, "HOME="+s.dir, "DISPLAY=", "HEAPCAM_SOCKET="+s.dir+"/agent.sock",
		"HEAPCAM_MAX_TRACE_SIZE=16MiB")
	source, err := os.ReadFile(filepath.Join(root, "examples/leakyshop/LeakyShop.java"))
	if err != nil {
		t.Fatal(err)
	}
	leak := regexp.MustCompile(`(?m)^.*// LEAK.*$`)
	examples, err := filepath.Abs(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(s.dir, "examples")); err != nil {
		t.Fatal(err)
	}
	repaired := leak.ReplaceAllString(string(source), "")
	for name, text := range map[string]string{"before": string(source), "after": repaired} {
		path := filepath.Join(s.dir, name, "LeakyShop.java")
		if os.MkdirAll(filepath.Dir(path), 0o755) != nil || os.WriteFile(path, []byte(text), 0o644) != nil {
			t.Fatal("the example was not written")
		}
	}
	s.must(t, 3*time.Minute, `cd "$HOME" && mkdir -m 700 bin rings && ln -s "$(command -v heapcam)" bin/heapcam
		for d in before after; do javac -d $d $d/LeakyShop.java || exit 1; done
		printf 'public class App { public static void main(String[] a) throws Exception { Object[] x = new Object[500];
			for (int i = 0; i < 3000000; i++) { x[i %% 500] = new byte[400];
				if (i %% 100000 == 0) { System.gc(); Thread.sleep(100); } } } }' >App.java
		javac -d app App.java && jar --create --file app.jar --main-class App -C app .
		record() { rm -rf rec-$1
		  heapcam run --out rec-$1 --sampling 32KiB -- timeout $2 java -Xmx256m -XX:+UseParallelGC -cp $1 LeakyShop
		  heapcam pull --out rec-$1 -o $1.heapcam; }
		for d in before after; do record $d 10 >$d.log 2>&1 || : & done; wait
		for longer in 20 40; do # on a busy machine there may be too few collections to tell
		  rc=0; heapcam leaks --fail-on-suspect before.heapcam >/dev/null 2>&1 || rc=$?
		  [ $rc = 9 ] || { rm -f before.heapcam; record before $longer >before.log 2>&1 || :; }
		done
		[ -s before.heapcam ] && [ -s after.heapcam ] || { cat before.log after.log; exit 1; }
		ln before.heapcam incident.heapcam`)
	agent := []string{"agent", "--shm-dir", s.dir + "/rings", "--out", s.dir + "/recordings"}
	if os.Getenv("HEAPCAM_FULL") != "" {
		agent = append(agent, "--metrics", "127.0.0.1:9464") // the address of the service
	}
	s.start(t, "heapcam", agent...)
	// The shop takes what CPU time it gets. The commands come first.
	app := s.start(t, "nice", "-n", "19", jdk+"/java", "-Xmx256m", "-XX:+UseParallelGC", "-cp", s.dir+"/before",
		"LeakyShop")
	s.env = append(s.env, fmt.Sprintf("PID=%d", app))
	s.must(t, time.Minute, `for i in $(seq 50); do heapcam attach $PID >attach.log 2>&1 && exit 0; sleep 0.3; done
		cat attach.log heapcam.log; exit 1`)
	return s
}

// start starts a program that ends with the test, and gives its pid.
func (s *shop) start(t *testing.T, name string, args ...string) int {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, "/usr/bin/env", append([]string{name}, args...)...)
	c.Env, c.Dir = s.env, s.dir
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	log, err := os.Create(filepath.Join(s.dir, filepath.Base(name)+".log"))
	if err != nil {
		stop()
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = c.Wait() })
	return c.Process.Pid
}

// must runs a script in the fixture's folder.
func (s *shop) must(t *testing.T, limit time.Duration, script string) {
	t.Helper()
	if out, err := s.bash(t, s.dir, limit, script); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (s *shop) bash(t *testing.T, dir string, limit time.Duration, script string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	c := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", script)
	c.Env, c.Dir = s.env, dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second
	out, err := c.CombinedOutput()
	return string(out), err
}

// run runs a page's commands in a folder of its own.
func (s *shop) run(t *testing.T, script string, full bool) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range []string{"app.jar", "incident.heapcam", "before.heapcam", "after.heapcam", "bin", "examples"} {
		if err := os.Symlink(filepath.Join(s.dir, f), filepath.Join(dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	limit := 90 * time.Second
	if full {
		limit = 20 * time.Minute
	}
	if out, err := s.bash(t, dir, limit, script); err != nil {
		if len(out) > 6000 {
			out = out[:2000] + "\n…\n" + out[len(out)-4000:]
		}
		t.Errorf("%v\n%s", err, out)
	}
}
