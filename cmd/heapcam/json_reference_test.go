//go:build linux

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/compare"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/analysis/drag"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/whatif"
	"github.com/heapcam/heapcam/ringstore"
)

// jsonDocs are the documents that --json prints, in the order of the reference.
var jsonDocs = []struct {
	schema, from string // a document without a schema has its name in from
	value        any
}{
	{analysis.ReportSchema, "`heapcam report --json`", analysis.Report{}},
	{"heapcam.leaks/1", "`heapcam leaks --json`", leak.Report{}},
	{"heapcam.histogram/1", "`heapcam histogram --json`", sites.Histogram{}},
	{"heapcam.group/1", "`heapcam group --json`", analysis.Grouping{}},
	{"", "`heapcam group --list --json`, one document per line", analysis.ListedObject{}},
	{"heapcam.diff/1", "`heapcam diff --json` of one recording", analysis.DiffReport{}},
	{"heapcam.diff2/1", "`heapcam diff --json` of two recordings", compare.Report{}},
	{"heapcam.trend/1", "`heapcam trend --json`", analysis.TrendReport{}},
	{"heapcam.survival/1", "`heapcam trend --survival --json`", history.SurvivalReport{}},
	{"heapcam.history/1", "`heapcam history --json`", history.HeapHistory{}},
	{"heapcam.lifetimes/1", "`heapcam lifetimes --json`", lifetimes.Report{}},
	{"heapcam.drag/1", "`heapcam drag --json`", drag.Report{}},
	{"heapcam.whatif/1", "`heapcam whatif --json`", whatif.Report{}},
	{"heapcam.holders/1", "`heapcam holders --json`", retention.HoldersReport{}},
	{"heapcam.paths/1", "`heapcam paths --json`", retention.PathsReport{}},
	{"heapcam.dominators/1", "`heapcam dominators --json`", retention.DominatorsReport{}},
	{"heapcam.dominators-growth/1", "`heapcam dominators --since GC --json`", retention.GrowthReport{}},
	{"heapcam.loaders/1", "`heapcam loaders --json`", retention.LoadersReport{}},
	{"heapcam.coverage/1", "`heapcam coverage --json`", sites.CoverageReport{}},
	{"", "`heapcam coverage --calibrate --json`", sites.Calibration{}},
	{"heapcam.verify/1", "`heapcam verify --json`", verifyReply{}},
	{"heapcam.cost/1", "`heapcam cost --json`", cost.Cost{}},
	{"heapcam.classifiers/1", "`heapcam classifiers --json`", classifiersReply{}},
	{"heapcam.status/1", "`heapcam status --json`", api.StatusReply{}},
	{"heapcam.attach/1", "`heapcam attach --json`", attachReply{}},
	{"heapcam.detach/1", "`heapcam detach --json`; `pause` and `resume` print the same with their own names",
		askReply{}},
	{"heapcam.references/1", "`heapcam references --json`", referencesReply{}},
	{"heapcam.incident/1", "`heapcam freeze --json`", ringstore.Incident{}},
	{"", "`heapcam incidents show --json`", incidentReply{}},
	{"heapcam.incidents/1", "`heapcam incidents --json`", incidentsReply{}},
	{"heapcam.bucket/1", "`heapcam incidents s3://BUCKET --json`", bucketReply{}},
	{"heapcam.doctor/1", "`heapcam doctor --json`", doctorReply{}},
	{"heapcam.config/1", "`heapcam config show --json`", configReply{}},
	{"heapcam.service-status/1", "`heapcam service status --json`", serviceReply{}},
	{"heapcam.version/1", "`heapcam version --json`", versionReply{}},
}

// jsonParts are objects that several documents contain. A document links to them.
var jsonParts = []struct {
	name, anchor string
	value        any
}{
	{"frame", "frame", sites.StackFrame{}},
	{"coverage", "coverage", sites.Coverage{}},
	{"site", "site", sites.Row{}},
	{"changes", "changes", analysis.Changes{}},
	{"range", "range", analysis.Range{}},
	{"lifetime", "lifetime", lifetimes.Row{}},
	{"drag-row", "drag-row", drag.Row{}},
	{"figure", "figure", drag.Figure{}},
	{"span", "span", whatif.Span{}},
	{"prediction", "prediction", whatif.Prediction{}},
	{"advice", "advice", whatif.Advice{}},
	{"equations", "equations", whatif.OneGeneration{}},
	{"slope", "slope", compare.Slope{}},
	{"minute", "minute", cost.Minute{}},
	{"leak", "leak", leak.Verdict{}},
	{"incident", "heapcamincident1", ringstore.Incident{}},
}

const jsonHead = `# JSON

A document is one JSON object. Its field ` + "`schema`" + ` names its kind and version; documents whose heading below is
a command have none. heapcam adds fields without a new version. It raises the version when an old reader would misread
the document.

- An integer can exceed 2^53. Use a parser that keeps 64-bit integers.
- A time is a string in RFC 3339, and in a field that ends in ` + "`_ms`" + ` an integer in milliseconds.
- A duration is an integer in nanoseconds in fields that end in ` + "`_ns`" + `, and a number of seconds in fields with
  ` + "`seconds`" + ` in their name.
- "Optional" fields are absent when they are empty, zero or false.
- ` + "`a[].b`" + ` is the field b of each element of the list a. ` + "`a.*`" + ` is each value of the object a.
`

// jsonPage explains each field of each document. A field's meaning is its comment in the source, or its line in
// testdata/json-meanings.txt.
func jsonPage(t *testing.T) []byte {
	j := &jsonFields{t: t, meanings: readMeanings(t), used: map[string]bool{},
		comments: map[string]map[string]string{}}
	var b bytes.Buffer
	b.WriteString(generated + jsonHead)
	for _, d := range jsonDocs {
		title := "`" + d.schema + "`"
		if d.schema == "" {
			title = d.from
		}
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		if d.schema != "" {
			fmt.Fprintf(&b, "Printed by %s.\n\n", d.from)
		}
		b.WriteString("| field | type | meaning |\n|---|---|---|\n")
		verb, _, _ := strings.Cut(strings.TrimPrefix(d.schema, "heapcam."), "/")
		if d.schema == "" {
			verb = reflect.TypeOf(d.value).Name()
		}
		j.doc = verb
		j.rows(&b, verb, "", reflect.TypeOf(d.value), nil)
	}
	b.WriteString("\n## Objects that several documents contain\n")
	for _, part := range jsonParts {
		if part.name == part.anchor {
			fmt.Fprintf(&b, "\n### `%s`\n\n| field | type | meaning |\n|---|---|---|\n", part.name)
			j.doc = part.name
			j.rows(&b, part.name, "", reflect.TypeOf(part.value), nil)
		}
	}
	for key := range j.meanings {
		if !j.used[key] {
			t.Errorf("json-meanings.txt explains %s, which no document has", key)
		}
	}
	return b.Bytes()
}

// readMeanings reads lines of PARENT.field, a tab, and the meaning. PARENT is the field above, or the verb that prints
// the document. VERB:PARENT.field explains a field of one document, *.field all other fields of that name.
func readMeanings(t *testing.T) map[string]string {
	b, err := os.ReadFile("testdata/json-meanings.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if key, text, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(key, "#") {
			out[key] = text
		}
	}
	return out
}

type jsonFields struct {
	t        *testing.T
	doc      string // the verb of the document
	meanings map[string]string
	used     map[string]bool
	comments map[string]map[string]string // by folder: comments by TYPE.Field
}

// rows writes a row for each field of a struct, and for the fields below it. parent is the name of the object, and path
// has the structs above it.
func (j *jsonFields) rows(b *bytes.Buffer, parent, prefix string, s reflect.Type, path []reflect.Type) {
	for i := range s.NumField() {
		f := s.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			j.rows(b, parent, prefix, f.Type, append(path, s))
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		kind, below, suffix := jsonType(f.Type)
		if optional {
			kind += ", optional"
		}
		meaning := j.meaning(parent, s, f, name)
		again := false
		for _, above := range append(path, s) {
			again = again || above == below
		}
		for _, part := range jsonParts {
			if below != nil && below == reflect.TypeOf(part.value) {
				kind = strings.Replace(kind, "object", "["+part.name+"](#"+part.anchor+")", 1)
				below = nil
			}
		}
		if again {
			meaning += " Each has the same fields as the object that contains it."
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, name, kind, escapeCell(meaning))
		if below != nil && !again {
			j.rows(b, name, prefix+name+suffix+".", below, append(path, s))
		}
	}
}

// jsonType names the type that JSON has for t, gives the struct below it, if any, and how a path goes there.
func jsonType(t reflect.Type) (name string, below reflect.Type, suffix string) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time", nil, ""
	case t == reflect.TypeFor[time.Duration]():
		return "duration", nil, ""
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.Slice, reflect.Array:
		name, below, suffix = jsonType(t.Elem())
		return "list of " + name, below, "[]" + suffix
	case reflect.Map:
		name, below, suffix = jsonType(t.Elem())
		return "object of " + name, below, ".*" + suffix
	case reflect.Struct:
		return "object", t, ""
	case reflect.Bool:
		return "boolean", nil, ""
	case reflect.String:
		return "string", nil, ""
	case reflect.Float32, reflect.Float64:
		return "number", nil, ""
	case reflect.Interface:
		return "any", nil, ""
	}
	return "integer", nil, ""
}

// meaning gives the text of a field. parent is the name of the object that has it.
func (j *jsonFields) meaning(parent string, s reflect.Type, f reflect.StructField, name string) string {
	key := parent + "." + name
	for _, k := range []string{j.doc + ":" + key, key, "*." + name} {
		if text, ok := j.meanings[k]; ok {
			j.used[k] = true
			return text
		}
	}
	text := j.commentsOf(s)[s.Name()+"."+f.Name]
	if text == "" {
		j.t.Errorf("%s has neither a comment nor a line in testdata/json-meanings.txt", key)
	}
	return text
}

// commentsOf gives the comments on the fields of the structs in the package of s.
func (j *jsonFields) commentsOf(s reflect.Type) map[string]string {
	_, folder, _ := strings.Cut(s.PkgPath(), "github.com/heapcam/heapcam/")
	dir := filepath.Join("../..", folder)
	if j.comments[dir] != nil {
		return j.comments[dir]
	}
	all := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		j.t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			j.t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, id := range f.Names {
						text := strings.Fields(f.Doc.Text() + " " + f.Comment.Text())
						all[spec.Name.Name+"."+id.Name] = strings.Join(text, " ")
					}
				}
			}
			return false
		})
	}
	j.comments[dir] = all
	return all
}
