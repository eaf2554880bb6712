package ui

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Columns is a table of text: columns are as wide as their widest cell, two blanks apart. The last one takes what room
// there is and breaks at blanks.
type Columns struct {
	indent int
	heads  []string
	right  []bool
	rows   [][]Text
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
	row := make([]Text, 0, len(cells))
	for _, x := range cells {
		row = append(row, Sprintf("%v", x))
	}
	c.rows = append(c.rows, row)
}

// Under adds a line of its own below a row, at indent: what has no column.
func (c *Columns) Under(indent int, t Text) {
	c.rows = append(c.rows, []Text{Text(strings.Repeat(" ", indent)) + t})
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
				wide[i] = max(wide[i], utf8.RuneCountInString(string(x)))
			}
		}
	}
	heads := make([]Text, len(c.heads))
	for i, h := range c.heads {
		heads[i] = Text(h)
	}
	c.line(w, heads, wide)
	for _, row := range c.rows {
		if len(row) == 1 && len(c.heads) > 1 {
			Fprintf(w, "%s\n", row[0])
			continue
		}
		c.line(w, row, wide)
	}
}

// line prints a row.
func (c *Columns) line(w io.Writer, row []Text, wide []int) {
	b := strings.Repeat(" ", c.indent)
	last := len(wide) - 1
	for i, x := range row[:min(last, len(row))] {
		if c.right[i] {
			b += fmt.Sprintf("%*s  ", wide[i], string(x))
		} else {
			b += fmt.Sprintf("%-*s  ", wide[i], string(x))
		}
	}
	end := Text("")
	if len(row) > last {
		end = row[last]
	}
	if c.right[last] {
		Fprintf(w, "%s\n", Text(strings.TrimRight(b+fmt.Sprintf("%*s", wide[last], string(end)), " ")))
		return
	}
	at := utf8.RuneCountInString(b)
	for i, l := range Wrap(end, max(Width-at, Width/3)) {
		if i > 0 {
			b = strings.Repeat(" ", at)
		}
		Fprintf(w, "%s\n", Text(strings.TrimRight(b+string(l), " ")))
	}
}
