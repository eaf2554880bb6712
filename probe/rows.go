package probe

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed src/vmrows.def
var rowsText string

// Row is one name of HotSpot that the probe reads: a row of src/vmrows.def, which explains the fields.
type Row struct {
	Slot      string
	Collector string // Serial, Parallel, G1; "": all three, or every one
	Constant  bool
	Static    bool
	Type      string // of the field; "" for a constant
	Name      string // of the field or the constant
	Shape     string // of a field: POINTER, SIZE, ..., see enum vm_shape; STRUCT: Inner names it
	Inner     string
	Least     int64 // of a constant
	Most      int64
	First     int // majors of the JDK
	Last      int // 0: no end is known
	Optional  bool
	Use       string
}

// FullName is Type::Name, or the name of a constant.
func (r Row) FullName() string {
	if r.Constant {
		return r.Name
	}
	return r.Type + "::" + r.Name
}

// In says whether a JDK is in the row's range.
func (r Row) In(major int) bool { return major >= r.First && (r.Last == 0 || major <= r.Last) }

var (
	rowLine    = regexp.MustCompile(`^(?:ALT_)?(ROW|PART|CONSTANT|TESTED)\((.*)\)$`)
	rowColumns = map[string]int{"ROW": 10, "PART": 9, "CONSTANT": 10, "TESTED": 1}
	collectors = map[string]string{"ALL": "", "EVERY": "", "SERIAL": "Serial", "PARALLEL": "Parallel", "G1": "G1"}
)

// table is src/vmrows.def.
type table struct {
	rows   []Row
	tested []int
	err    error
}

var parsed = sync.OnceValue(func() (t table) {
	for no, line := range strings.Split(rowsText, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		m := rowLine.FindStringSubmatch(line)
		if m == nil {
			t.err = fmt.Errorf("src/vmrows.def, line %d: not a row", no+1)
			return t
		}
		c := strings.Split(m[2], ", ")
		if len(c) != rowColumns[m[1]] {
			t.err = fmt.Errorf("src/vmrows.def, line %d: %d columns, want %d", no+1, len(c), rowColumns[m[1]])
			return t
		}
		if err := t.add(m[1], c); err != nil {
			t.err = fmt.Errorf("src/vmrows.def, line %d: %w", no+1, err)
			return t
		}
	}
	return t
})

func (t *table) add(kind string, c []string) error {
	if kind == "TESTED" {
		major, err := strconv.Atoi(c[0])
		t.tested = append(t.tested, major)
		return err
	}
	r := Row{Slot: c[0]}
	var ok bool
	if r.Collector, ok = collectors[c[1]]; !ok {
		return fmt.Errorf("unknown collector %s", c[1])
	}
	var errs [4]error
	switch kind {
	case "ROW":
		r.Static, r.Shape, r.Type, r.Name, c = c[2] == "STATIC", c[3], c[4], c[5], c[6:]
	case "PART":
		r.Shape, r.Inner, r.Type, r.Name, c = "STRUCT", c[2], c[3], c[4], c[5:]
	case "CONSTANT":
		r.Constant, r.Name = true, c[5]
		r.Least, errs[0] = strconv.ParseInt(c[3], 10, 64)
		r.Most, errs[1] = strconv.ParseInt(c[4], 10, 64)
		c = c[6:]
	}
	r.First, errs[2] = strconv.Atoi(c[0])
	if c[1] != "NEWER" {
		r.Last, errs[3] = strconv.Atoi(c[1])
	}
	r.Optional, r.Use = c[2] == "OPTIONAL", c[3]
	t.rows = append(t.rows, r)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Rows are the names of HotSpot that the probe reads. Those of one slot follow each other.
func Rows() []Row { return slices.Clone(parsed().rows) }

// Tested are the majors of the JDKs that the tests run on, from the oldest up. Older ones are refused; a newer one is
// recorded if its tables are as expected and the probe's checks of its own walks pass.
func Tested() []int { return slices.Clone(parsed().tested) }

// Slots gives the rows that apply to a JDK, slot by slot, and whether the JDK must have one of them.
func Slots(major int) (slots [][]Row, needed []bool) {
	all := Rows()
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Slot == all[0].Slot {
			n++
		}
		of := all[:n:n]
		all = all[n:]
		in := slices.DeleteFunc(slices.Clone(of), func(r Row) bool { return !r.In(major) })
		span := of[0]
		for _, r := range of {
			span.First = min(span.First, r.First)
			if r.Last == 0 || span.Last != 0 && r.Last > span.Last {
				span.Last = r.Last
			}
		}
		need := len(in) > 0 || span.In(major)
		if len(in) == 0 {
			in = of
		}
		slots, needed = append(slots, in), append(needed, need && !of[0].Optional)
	}
	return slots, needed
}
