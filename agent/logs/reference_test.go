package logs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

//go:generate go test . -run TestReference -update

var update = flag.Bool("update", false, "write the generated page anew")

const (
	root = "../.."
	page = root + "/docs/reference/logs.md"
)

// TestReference fails when the page of all messages is stale, when a message is used nowhere, and when something is
// logged that is no message of this package.
func TestReference(t *testing.T) {
	used := calls(t)
	for _, m := range All() {
		if used[m] == nil {
			t.Errorf("%s is written nowhere: remove it", m.ID)
		}
	}
	want := reference(used)
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale (%v): run go generate ./agent/logs", page, err)
	}
}

// TestMessages demands of each message what its readers rely on.
func TestMessages(t *testing.T) {
	ids := map[string]bool{}
	for _, m := range All() {
		if ids[m.ID] || m.ID != strings.ToLower(m.ID) || strings.ContainsAny(m.ID, " _") {
			t.Errorf("%q: not unique, or not in the form of an id", m.ID)
		}
		ids[m.ID] = true
		if m.Text == "" || strings.HasSuffix(m.Text, ".") || strings.Contains(m.Text, "%") || len(m.Text) > 90 {
			t.Errorf("%s: the text %q is empty, long or no constant", m.ID, m.Text)
		}
		if m.Cause == "" || !strings.HasSuffix(m.Cause, ".") {
			t.Errorf("%s: the cause %q is no sentence", m.ID, m.Cause)
		}
		if m.Level == fail && m.Remedy == "" {
			t.Errorf("%s is an error: somebody must act, and nothing says how", m.ID)
		}
		if strings.HasSuffix(m.Remedy, ".") {
			t.Errorf("%s: the remedy is a field: no full stop", m.ID)
		}
	}
	names := map[string]bool{}
	for _, k := range Keys() {
		if names[k.Name] || k.Meaning == "" {
			t.Errorf("the key %q is there twice, or means nothing", k.Name)
		}
		names[k.Name] = true
	}
}

// around are the methods of zerolog that log without a Message.
var around = map[string]bool{"Msg": true, "Msgf": true, "MsgFunc": true, "Send": true}

// calls gives the fields that the code writes with each message.
func calls(t *testing.T) map[*Message][]*Key {
	t.Helper()
	named, keyed := variables(t)
	used, set, seen := map[*Message][]*Key{}, token.NewFileSet(), 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(filepath.ToSlash(path), filepath.ToSlash(root)+"/agent/logs/") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		zerolog, logs := imports(f)
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := c.Fun.(*ast.SelectorExpr); ok && zerolog && around[s.Sel.Name] {
				t.Errorf("%s: .%s: log through logs.Write", set.Position(c.Pos()), s.Sel.Name)
			}
			if !logs || selected(c.Fun) != "Write" {
				return true
			}
			seen++
			m := named[selected(c.Args[1])]
			if m == nil || c.Ellipsis.IsValid() {
				t.Errorf("%s: logs.Write takes one of the messages and a list of fields", set.Position(c.Pos()))
				return true
			}
			used[m] = append(append([]*Key{}, used[m]...), fields(c.Args[2:], keyed)...)
			return true
		})
		return nil
	})
	if err != nil || seen < 40 {
		t.Fatalf("%d calls were found: %v", seen, err)
	}
	return used
}

// imports says whether a file imports zerolog, or has its types by way of a configuration, and this package.
func imports(f *ast.File) (zerolog, logs bool) {
	for _, i := range f.Imports {
		zerolog = zerolog || strings.Contains(i.Path.Value, "/agent") || strings.Contains(i.Path.Value, "zerolog")
		logs = logs || i.Path.Value == `"github.com/heapcam/heapcam/agent/logs"`
	}
	return zerolog || strings.HasPrefix(f.Name.Name, "agent"), logs
}

// selected gives X of logs.X, "" for anything else.
func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if p, ok := s.X.(*ast.Ident); ok && p.Name == "logs" {
			return s.Sel.Name
		}
	}
	return ""
}

// fields gives the keys of arguments logs.K.Of(…).
func fields(args []ast.Expr, keyed map[string]*Key) (out []*Key) {
	for _, a := range args {
		if c, ok := a.(*ast.CallExpr); ok {
			if s, ok := c.Fun.(*ast.SelectorExpr); ok && keyed[selected(s.X)] != nil {
				out = append(out, keyed[selected(s.X)])
			}
		}
	}
	return out
}

// variables gives the messages and the keys of this package by the names of their variables.
func variables(t *testing.T) (map[string]*Message, map[string]*Key) {
	t.Helper()
	named, keyed := map[string]*Message{}, map[string]*Key{}
	pkg, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pkg {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			c, ok := v.Values[0].(*ast.CallExpr)
			if !ok {
				return true
			}
			switch f, _ := c.Fun.(*ast.Ident); {
			case f == nil:
			case f.Name == "line":
				id := text(c.Args[1])
				i := slices.IndexFunc(messages, func(m *Message) bool { return m.ID == id })
				named[v.Names[0].Name] = messages[i]
			case f.Name == "key":
				name := text(c.Args[0])
				i := slices.IndexFunc(keys, func(k *Key) bool { return k.Name == name })
				keyed[v.Names[0].Name] = keys[i]
			}
			return true
		})
	}
	return named, keyed
}

func text(e ast.Expr) string {
	s, _ := strconv.Unquote(e.(*ast.BasicLit).Value)
	return s
}

const intro = `<!-- Generated: go generate ./agent/logs. Do not edit. -->
# Log messages

The agent logs to stderr; as a service, to the journal (` + "`journalctl -u heapcam`" + `) or to Windows' event log.
A line has a time, a level, a message and fields. The message is constant. Its ` + "`id`" + ` never changes: use it in
alerts. Warnings and errors have the field ` + "`remedy`" + `.
` + "`heapcam run` and `record`" + ` log the same lines with ` + "`--verbose`" + `. A *defect* is one of heapcam's:
[report it](../../CONTRIBUTING.md#report-a-defect).

| level | meaning |
|---|---|
| ERR | Somebody must act, or data is lost. Use these for alerts that wake somebody. |
| WRN | heapcam works, but does less than it was asked to. |
| INF | Something has changed. |
| DBG | Details; only with ` + "`--verbose`" + `. |

`

// titles are the headings of the components, and what their lines have in common.
var titles = []struct{ component, title, about string }{
	{agent, "Agent", "The agent as a whole."},
	{recorder, "Recordings", "Each line has the field `recording`."},
	{store, "Files of recordings", "Ring files, and what the agent removes."},
	{discovery, "Finding JVMs", "JVMs that are not recorded, and why."},
	{spool, "Spool folder", "Files that others put into the spool folder."},
	{access, "Access", "Who changed or copied what."},
}

func reference(used map[*Message][]*Key) []byte {
	var b bytes.Buffer
	b.WriteString(intro)
	for _, c := range titles {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", c.title, c.about)
		b.WriteString("| id | level | message | fields | cause | remedy |\n|---|---|---|---|---|---|\n")
		for _, m := range All() {
			if m.Component != c.component {
				continue
			}
			var with []string
			for _, k := range Keys() {
				if k.Name != Remedy.Name && slices.Contains(used[m], k) {
					with = append(with, "`"+k.Name+"`")
				}
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", m.ID, short[m.Level], m.Text,
				strings.Join(with, ", "), m.Cause, m.Remedy)
		}
		b.WriteString("\n")
	}
	b.WriteString(probeTable())
	b.WriteString("## Fields\n\n| field | meaning |\n|---|---|\n")
	for _, k := range Keys() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.Name, k.Meaning)
	}
	return b.Bytes()
}

// short are the levels as lines show them.
var short = map[zerolog.Level]string{fail: "ERR", warn: "WRN", info: "INF", debug: "DBG"}
