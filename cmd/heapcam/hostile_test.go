//go:build unix

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/export"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// evil begins what an attacker wants to see as a line of its own; body is what hostile names have in common, heads
// how they begin. A name is a head and body, some are longer than what is shown.
const (
	evil = "EVIL"
	body = "x\n" + evil + " no leak found\r" + evil +
		"\t\x1b[2J\x1b]0;t\a\x00\x7f\u0085\u009b31m\u202e\u2066\u200b\u200d\ufeff\u2028" + evil +
		"\u2029\u00a0\u3164\ufe0f\U000e0041\\x1b  " + evil
)

var heads = []string{"=", "+", "-", "@", "\t=", "\r=", "\n" + evil, "\x1b[1A", "\u202e", "＝", "'"}

func hostileName(i int) string {
	name := heads[i%len(heads)] + strconv.Itoa(i) + body
	if i%4 == 3 {
		name += strings.Repeat("n", 2000)
	}
	return name
}

// hostileRing writes a recording in which each name, whatever of, is hostile.
func hostileRing(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 4 << 20},
		ringstore.Identity{Session: strings.Repeat("0", 32), Name: hostileName(0), VM: hostileName(1),
			Probe: hostileName(2)})
	if err != nil {
		t.Fatal(err)
	}
	m, n := tracetest.New(tracetest.Config{Seed: 1, SampleEvery: 2}), 0
	next := func() string { n++; return hostileName(n) }
	for i := range uint64(40) {
		var frame []byte
		for _, b := range m.Step(i%10 == 0).Blocks {
			was := b
			switch b.Kind {
			case trace.KindMeta:
				meta, err := trace.DecodeMeta(b)
				if err != nil {
					t.Fatal(err)
				}
				if meta.HasJVM {
					meta.JVM.VM, meta.JVM.Probe = next(), next()
				}
				meta.Notes = append(meta.Notes, trace.Note{Time: i + 1, Text: next()},
					trace.Note{Time: i + 1, Text: "sites: " + next()})
				meta.Unlisted = append(meta.Unlisted, trace.Unlisted{Time: i + 1, Largest: next()})
				b = trace.EncodeMeta(meta)
				was.Version = b.Version
			case trace.KindDefs:
				d, err := trace.DecodeDefs(b)
				if err != nil {
					t.Fatal(err)
				}
				for i := range d.Types {
					d.Types[i].Name = next()
				}
				for i := range d.Loaders {
					d.Loaders[i].Name = next()
				}
				for i := range d.Methods {
					d.Methods[i].Class, d.Methods[i].Name, d.Methods[i].File = "L"+next()+";", next(), next()
				}
				for i := range d.Threads {
					d.Threads[i].Name = next()
				}
				b = trace.EncodeDefs(d)
			}
			b.Seq, b.Version, b.Flags = was.Seq, was.Version, was.Flags
			frame = trace.AppendBlock(frame, b)
		}
		write := s.Append
		if i%10 == 0 {
			write = s.Rotate
		}
		if err := write(frame, ringstore.FrameInfo{Source: i + 1, FirstGC: i + 1, LastGC: i + 1,
			T0: i + 1, T1: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// hostileAgent answers on a socket with hostile words.
func hostileAgent(t *testing.T, socket string, fails bool) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	st := session.Status{ID: hostileName(0), Name: "svc", PID: 4711, Phase: session.Recording, Depth: hostileName(5),
		DepthAsked: hostileName(6), DepthWhy: hostileName(7), Reason: hostileName(8),
		Incident: hostileName(9), StoreError: hostileName(10), Renew: true, Probe: hostileName(1),
		Dir: "/" + hostileName(2), Session: hostileName(3)}
	other := st
	other.Name, other.PID, other.Phase = hostileName(4), 4712, session.Phase(hostileName(5))
	status := api.StatusReply{Schema: api.StatusSchema, Agent: true, JVMs: []session.Status{st, other},
		Self: &quota.Self{},
		Others: []api.Other{{ID: hostileName(0), Name: hostileName(1), Why: hostileName(2),
			Reason: hostileName(3), Remedy: hostileName(4)}},
		Spool: &spool.Status{Dir: hostileName(5), Error: hostileName(6),
			Left: []spool.Item{{Name: hostileName(7), Reason: hostileName(8)}}}}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var reply any = status
		switch verb := filepath.Base(r.URL.Path); {
		case fails && verb != "status", verb == "pull":
			w.WriteHeader(http.StatusBadRequest)
			reply = map[string]any{"error": hostileName(7), "kind": hostileName(1)}
		case verb == "attach":
			reply = api.AttachReply{ID: hostileName(0), PID: 7, Name: hostileName(1), Dir: hostileName(2)}
		case verb != "status":
			reply = api.DetachReply{Asked: 1}
		}
		json.NewEncoder(w).Encode(reply)
	}))
}

// talk runs one command line and gives what it wrote on stdout and stderr.
func talk(t *testing.T, f func()) (out, errs []byte) {
	t.Helper()
	var files [2]*os.File
	for i := range files {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	wasOut, wasErr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = files[0], files[1]
	func() {
		defer func() { os.Stdout, os.Stderr = wasOut, wasErr }()
		f()
		ui.Flush()
	}()
	var all [2][]byte
	for i, f := range files {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		all[i] = b
	}
	return all[0], all[1]
}

// harmless fails on what must not reach a terminal: hidden characters, bytes that are no UTF-8, lines that an
// attacker began.
func harmless(t *testing.T, what string, text []byte) {
	t.Helper()
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), evil) {
			t.Errorf("%s: a line begins with what an attacker chose: %.100q", what, line)
			return
		}
		for i, r := range line {
			if ui.Hidden(r) || r == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd") {
				t.Errorf("%s: %U at %d of %.200q", what, r, i, line)
				return
			}
		}
	}
}

// TestHostileNames sends hostile names through every verb and every format.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for k, v := range map[string]string{"HEAPCAM_OUT": dir + "/rec", "HEAPCAM_SOCKET": dir + "/none.sock",
		"XDG_CACHE_HOME": dir + "/cache", "XDG_RUNTIME_DIR": dir} {
		t.Setenv(k, v)
	}
	name := strings.ReplaceAll(hostileName(0), "\x00", "") // a file's
	ring := filepath.Join(dir, "rec", name+"-4711-abc")
	hostileRing(t, ring)
	hostileAgent(t, dir+"/a.sock", false)
	hostileAgent(t, dir+"/b.sock", true)
	write := func(file, text string) string {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	quoted, _ := json.Marshal(hostileName(0))
	// YAML reads such strings
	quoted = bytes.ReplaceAll(ui.EscapeJSON(quoted), []byte(`\udb40\udc41`), []byte(`\U000e0041`))
	words := map[string]string{
		"R": ring, "R/..": filepath.Dir(ring), "N": name, "./N": "./" + name + "/", "a,N": "a," + name,
		"--N": "--" + name, "NOSUCH/N": "nosuch/" + name, "/dev/null/N": "/dev/null/" + name,
		"NOSUCH": "nosuch", "PULLED": "pulled" + name, "A": dir + "/a.sock", "B": dir + "/b.sock",
		"T": write("token", strings.Repeat("t", 32)),
		"Y": write("y.yaml", fmt.Sprintf("classifiers:\n- name: evil\n  description: %s\n  example: %[1]s\n  "+
			"cardinality: one\n  expression: type\n", quoted)),
		"K": write("k.yaml", fmt.Sprintf("%s: 1\n", quoted)),
		"V": write("v.yaml", fmt.Sprintf("spool: \"/%s\n", quoted[1:])),
	}
	if err := os.MkdirAll("run", 0o700); err != nil {
		t.Fatal(err)
	}
	if code := quietly(t, "pull", "-o", "f.heapcam", ring); code != 0 {
		t.Fatal("pull", code)
	}
	words["F"] = "f.heapcam"
	words["H"], _, _ = shop(t, "\x1b[2J\u202e"+evil+"\n"+evil)
	out, _ := talk(t, func() { run([]string{"freeze", "--reason", hostileName(1), ring}) })
	out2, _ := talk(t, func() { run([]string{"incidents", "--json"}) })
	var incidents struct{ Incidents []ringstore.Incident }
	if err := json.Unmarshal(out2, &incidents); err != nil || len(incidents.Incidents) != 1 ||
		incidents.Incidents[0].Reason != strings.ToValidUTF8(hostileName(1), "\ufffd") {
		t.Fatalf("%s\n%s\n%v", out, out2, err)
	}
	out, _ = talk(t, func() { run([]string{"histogram", "--json", ring}) })
	var h sites.Histogram
	if err := json.Unmarshal(out, &h); err != nil || len(h.Classes) == 0 ||
		!strings.Contains(h.Classes[0].Class, trace.PrettyClass(body)) {
		t.Fatalf("JSON does not give names as they are: %v %.300s", err, out)
	}
	words["C"] = h.Classes[0].Class

	used := map[string]bool{}
	for _, verb := range slices.Sorted(maps.Keys(verbs)) { // freeze before incidents
		for i, s := range verbs[verb] {
			if verb == "freeze" { // one a second
				os.RemoveAll(filepath.Join(dir, "rec", agent.IncidentsName))
			}
			args := strings.Fields(s.args)
			for i, a := range args {
				used[verb+" "+a] = true
				if i > 0 && args[i-1] == "--format" {
					used["format "+a] = true
				}
				switch w, ok := words[a]; {
				case a == "I":
					left, err := os.ReadDir(filepath.Join(dir, "rec", agent.IncidentsName))
					if err != nil || len(left) == 0 {
						t.Fatal(left, err)
					}
					args[i] = left[0].Name()
				case a == "O":
					args[i] = filepath.Join(t.TempDir(), "out")
				case ok:
					args[i] = w
				}
			}
			what := s.args
			begun := time.Now()
			watch := time.AfterFunc(20*time.Second, func() { panic(what + " does not end") })
			out, errs := talk(t, func() { run(args) })
			watch.Stop()
			if d := time.Since(begun); d > 300*time.Millisecond {
				t.Log(what, d)
			}
			if i > 0 || verb != "" {
				harmless(t, what+": stderr", errs)
			}
			hostileOutput(t, what, verb, s.args, s.bytes, out, errs)
			if s.shows && !bytes.Contains(slices.Concat(out, errs), []byte(evil)) {
				t.Errorf("%s: no hostile name is in what it says: nothing is tested: %.600s", what,
					slices.Concat(out, errs))
			}
		}
	}
	every(t, newRoot(), used)
	for _, f := range append([]string{"pprof", "collapsed", "hprof"}, export.TableFormats...) {
		if !used["format "+f] {
			t.Errorf("export --format %s is not tested with hostile names", f)
		}
	}
}

// hostileOutput demands of what a command line wrote that no form of it carries a hostile name as it is.
func hostileOutput(t *testing.T, what, verb, args, form string, out, errs []byte) {
	t.Helper()
	switch form {
	case "pprof":
		p, err := profile.ParseData(out)
		if err != nil {
			t.Errorf("%s: %v\n%s", what, err, errs)
			return
		}
		for _, f := range p.Function {
			harmless(t, what, []byte(f.Name+" "+f.Filename))
		}
		for _, x := range p.Sample {
			harmless(t, what, []byte(strings.Join(x.Label["type"], " ")))
		}
	case "raw":
		if len(out) == 0 {
			t.Errorf("%s: nothing: %s", what, errs)
		}
	default:
		harmless(t, what, out)
		if strings.Contains(args, "csv") {
			formulas(t, what, out)
		}
		if strings.Contains(args, "json") && len(out) > 0 && !strings.Contains(args, "--list") {
			names(t, what, verb, out)
		}
	}
}

// every demands that each verb and each of its formats is in verbs.
func every(t *testing.T, c *cobra.Command, used map[string]bool) {
	for _, s := range c.Commands() {
		if s.Name() != "help" && s.Name() != "completion" {
			every(t, s, used)
		}
	}
	verb := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "heapcam"), " ")
	if verb == "service" || verb == "config" || !c.Runnable() { // help alone
		return
	}
	if _, ok := verbs[verb]; !ok {
		t.Errorf("heapcam %s is not tested with hostile names: add a line to verbs", verb)
	}
	for _, f := range []string{"json", "csv"} {
		if c.LocalFlags().Lookup(f) != nil && !used[verb+" --"+f] {
			t.Errorf("heapcam %s --%s is not tested with hostile names: add it to verbs", verb, f)
		}
	}
}

// schemas are the names that the JSON of a verb may have where it is not heapcam.VERB/VERSION.
var schemas = map[string][]string{
	"config show": {"config"}, "diff": {"diff", "diff2"}, "export": {"export.state", "export.samples"},
	"freeze": {"incident"}, "incidents show": {"incident"}, "trend": {"trend", "survival"},
}

var (
	schemaName = regexp.MustCompile(`^heapcam\.([a-z0-9.-]+)/[1-9][0-9]*$`)
	jsonName   = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
)

// names demands that a verb's JSON says its schema, named after the verb, and that all its names are words with
// underscores between: one spelling everywhere.
func names(t *testing.T, what, verb string, out []byte) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Errorf("%s: no JSON: %v", what, err)
		return
	}
	want := schemas[verb]
	if want == nil {
		want = []string{strings.ReplaceAll(verb, " ", "-")}
	}
	schema, _ := doc["schema"].(string)
	if m := schemaName.FindStringSubmatch(schema); m == nil || !slices.Contains(want, m[1]) {
		t.Errorf("%s: schema %q, want heapcam.%s/N", what, schema, strings.Join(want, " or "))
	}
	spelled(t, what, doc)
}

func spelled(t *testing.T, what string, v any) {
	t.Helper()
	switch x := v.(type) {
	case map[string]any:
		for k, v := range x {
			if !jsonName.MatchString(k) {
				t.Errorf("%s: the name %q", what, k)
			}
			if k != "resource" { // its names are OpenTelemetry's
				spelled(t, what, v)
			}
		}
	case []any:
		for _, v := range x {
			spelled(t, what, v)
		}
	}
}

// formulas fails on cells that a spreadsheet takes for a formula.
func formulas(t *testing.T, what string, text []byte) {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Errorf("%s: %d rows, %v", what, len(rows), err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if _, err := strconv.ParseFloat(cell, 64); cell != "" && err != nil &&
				strings.ContainsRune("=+-@\t\r＝＋－＠", []rune(cell)[0]) {
				t.Errorf("%s: a formula: %.100q", what, cell)
				return
			}
		}
	}
}

func quietly(t *testing.T, args ...string) (code int) {
	t.Helper()
	_, errs := talk(t, func() { code = run(args) })
	harmless(t, args[0], errs)
	return code
}

// TestHostileText: what TestHostileNames cannot bring about without JVMs: JVMs with hostile names, the log, verdicts.
func TestHostileText(t *testing.T) {
	for what, f := range map[string]func(){
		"doctor": func() {
			j := jvms.JVM{ID: hostileName(0), Name: hostileName(1), Version: hostileName(2), Collector: hostileName(3)}
			printDoctor([]doctorRow{{JVM: j, Verdict: jvms.Verdict{Reason: hostileName(4), Remedy: hostileName(5),
				Warnings: []string{hostileName(6)}},
				Resource: trace.Resource{trace.AttrService: hostileName(7), trace.AttrPod: hostileName(8)}}})
		},
		"summary": func() {
			for _, p := range []session.Phase{session.Refused, session.ProbeStopped, session.KilledPhase} {
				ui.Fprintf(ui.Stdout, "%s\n", summary(session.Status{Name: hostileName(0), Dir: hostileName(1),
					Reason: hostileName(2), Phase: p}))
			}
		},
		"log": func() {
			log := newLog(ui.Stdout, zerolog.InfoLevel)
			log.Info().Str("name", hostileName(0)).Strs("all", []string{hostileName(1)}).
				Err(fmt.Errorf("%s", hostileName(2))).Interface("any",
				map[string]string{hostileName(3): hostileName(4)}).Msg(hostileName(5))
		},
		"leaks": func() {
			line := 7
			site := []sites.StackFrame{{Class: "java." + hostileName(0), Method: hostileName(1),
				File: hostileName(2), Line: &line}, {Class: hostileName(3), Method: hostileName(4)}}
			l := leak.Report{Note: hostileName(5),
				Verdicts: []leak.Verdict{{Class: hostileName(0), Loader: hostileName(1), Site: site,
					Sentence: ui.Flowf("%s", hostileName(2)), Thread: hostileName(3), Members: []leak.Member{
						{Class: hostileName(4), Site: site},
						{Class: hostileName(5), Loader: hostileName(0), Site: site}}}}}
			l.WriteText(ui.Stdout, "x")
			r := analysis.Report{JVM: hostileName(0), Collector: hostileName(1), End: hostileName(2),
				SitesCut: hostileName(3), FirstLook: ui.Flowf("%s", hostileName(4)),
				Collections: make([]analysis.CollectionRow, 1), Verdicts: l.Verdicts}
			r.WriteText(ui.Stdout, "x")
		},
		"refusal": func() {
			ui.Fprintf(ui.Stderr, "heapcam: %v\n",
				withCode(exitNoRecord, "pid %d (%s) cannot be recorded: %w", 7, hostileName(0),
					fmt.Errorf("%q", hostileName(1))))
		},
	} {
		out, errs := talk(t, f)
		harmless(t, what, out)
		harmless(t, what, errs)
		if !bytes.Contains(slices.Concat(out, errs), []byte(evil)) {
			t.Errorf("%s says nothing", what)
		}
	}

}
