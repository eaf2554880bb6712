package ui

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// formula are the characters that make a spreadsheet take a cell for a formula, in full width, too, and the mark
// that says it is text.
const formula = "=+-@＝＋－＠'"

// NewTable gives a writer that aligns columns: cells end with a tab, rows with a newline. Flush writes it out.
func NewTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }

// CSVCell gives a cell of text: escaped as by Escape, not cut, and behind an apostrophe if a spreadsheet would take
// it for a formula. Who reads such cells by a program takes one leading apostrophe off.
func CSVCell(s string) string {
	t := string(Escape(s))
	if r, size := utf8.DecodeRuneInString(t); size > 0 && strings.ContainsRune(formula, r) {
		return "'" + t
	}
	return t
}

// CSV writes rows. Cells that are strings are text, see CSVCell; numbers stay numbers.
type CSV struct {
	w   *csv.Writer
	row []string
}

// NewCSV writes the heading, which is ours.
func NewCSV(w io.Writer, heading ...string) *CSV {
	c := &CSV{w: csv.NewWriter(w)}
	c.w.Write(heading) // an error stays and Flush gives it
	return c
}

// Row writes a row; its error is that of the writer underneath.
func (c *CSV) Row(cells ...any) error {
	c.row = c.row[:0]
	for _, x := range cells {
		switch v := data(x).(type) {
		case string, datum:
			c.row = append(c.row, CSVCell(fmt.Sprint(x)))
		default:
			c.row = append(c.row, fmt.Sprint(v))
		}
	}
	return c.w.Write(c.row)
}

// Flush writes what is buffered and gives the first error.
func (c *CSV) Flush() error {
	c.w.Flush()
	return c.w.Error()
}

// JSON writes v as an indented document that a terminal can show, see EscapeJSON.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(jsonWriter{w})
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Envelope begins each JSON document of a verb.
type Envelope struct {
	Schema string `json:"schema"` // heapcam.VERB/VERSION
}

// NewEnvelope names the schema of a verb's document. A version is raised when a reader of the one before would be
// misled.
func NewEnvelope(verb string, version int) Envelope {
	return Envelope{fmt.Sprintf("heapcam.%s/%d", verb, version)}
}

// JSONLines gives an encoder that writes a document a line.
func JSONLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(jsonWriter{w})
	e.SetEscapeHTML(false)
	return e
}

// jsonWriter takes whole documents, as json.Encoder writes them.
type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	if _, err := j.w.Write(EscapeJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
