package ui

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Columns is a table of text: columns are as wide as their widest cell, two blanks apart. The last one takes what room
// there is: a Flow in it breaks at blanks, and a name that is longer within (Lines).
type Columns struct {
	indent int
	heads  []string
	right  []bool
	rows   [][]cell
}

// cell is the content of a column in a row; flows says that it may be broken into lines.
type cell struct {
	text  Text
	flows bool
}

// NewColumns begins a table under headings. A column whose heading begins with '>' is aligned to the right.
func NewColumns(indent int, heads ...string) *Columns {
	c := &Columns{indent: indent}
	for _, h := range heads {
		c.heads = append(c.heads, strings.TrimPrefix(h, ">"))
		c.right = append(c.right, strings.HasPrefix(h, ">"))
	}
	return c
}

// Row adds a row; its cells are data as the arguments of Fprintf are.
func (c *Columns) Row(cells ...any) {
	row := make([]cell, 0, len(cells))
	for _, x := range cells {
		f, flows := x.(Flow)
		if flows {
			x = Text(f)
		}
		row = append(row, cell{Sprintf("%v", x), flows})
	}
	c.rows = append(c.rows, row)
}

// Under adds a line of its own below a row, at indent: what has no column.
func (c *Columns) Under(indent int, t Text) {
	c.rows = append(c.rows, []cell{{text: Text(strings.Repeat(" ", indent)) + t}})
}

// Len is how many rows and lines there are.
func (c *Columns) Len() int { return len(c.rows) }

// Write prints the table; one without rows is nothing.
func (c *Columns) Write(w io.Writer) {
	if len(c.rows) == 0 {
		return
	}
	wide := make([]int, len(c.heads))
	for i, h := range c.heads {
		wide[i] = utf8.RuneCountInString(h)
	}
	for _, row := range c.rows {
		for i, x := range row {
			if len(row) > 1 || len(c.heads) == 1 {
				wide[i] = max(wide[i], utf8.RuneCountInString(string(x.text)))
			}
		}
	}
	heads := make([]cell, len(c.heads))
	for i, h := range c.heads {
		heads[i].text = Text(h)
	}
	c.line(w, heads, wide)
	for _, row := range c.rows {
		if len(row) == 1 && len(c.heads) > 1 {
			t := string(row[0].text)
			begin := t[:len(t)-len(strings.TrimLeft(t, " "))]
			Beside(w, Text(begin), Text(t[len(begin):]))
			continue
		}
		c.line(w, row, wide)
	}
}

// line prints a row.
func (c *Columns) line(w io.Writer, row []cell, wide []int) {
	b := strings.Repeat(" ", c.indent)
	last := len(wide) - 1
	for i, x := range row[:min(last, len(row))] {
		if c.right[i] {
			b += fmt.Sprintf("%*s  ", wide[i], string(x.text))
		} else {
			b += fmt.Sprintf("%-*s  ", wide[i], string(x.text))
		}
	}
	var end cell
	if len(row) > last {
		end = row[last]
	}
	if c.right[last] {
		Fprintf(w, "%s\n", Text(strings.TrimRight(b+fmt.Sprintf("%*s", wide[last], string(end.text)), " ")))
		return
	}
	if !end.flows {
		Beside(w, Text(b), end.text)
		return
	}
	at := utf8.RuneCountInString(b)
	for i, l := range Wrap(Flow(end.text), max(Width-at, Width/3)) {
		n := utf8.RuneCountInString(string(l))
		if i > 0 { // a long name moves to the left
			b = strings.Repeat(" ", max(c.indent+4, min(at, Width-n)))
		}
		Beside(w, Text(b), l)
	}
}
