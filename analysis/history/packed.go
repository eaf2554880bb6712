package history

import (
	"bytes"
	"encoding/gob"
	"errors"
	"github.com/heapcam/heapcam/analysis/sites"
	"slices"
)

// packedHistory is a HeapHistory as it is cached: the stacks of Sites as places in a list that has each frame once.
type packedHistory struct {
	HeapHistory
	Frames []packedFrame
	Stacks [][]int32
}

// packedFrame is a StackFrame, comparable. Line 0: not known.
type packedFrame struct {
	Class, Method, File string
	Line                int
	Native              bool
}

// Pack gives h in some bytes, for Unpack of the same program.
func (h *HeapHistory) Pack() ([]byte, error) {
	p := packedHistory{HeapHistory: *h}
	p.Sites = slices.Clone(h.Sites)
	at := map[packedFrame]int32{}
	for i := range p.Sites {
		stack := make([]int32, len(p.Sites[i].Site))
		for k, f := range p.Sites[i].Site {
			x := packedFrame{Class: f.Class, Method: f.Method, File: f.File, Native: f.Native}
			if f.Line != nil {
				x.Line = *f.Line
			}
			n, ok := at[x]
			if !ok {
				n = int32(len(p.Frames))
				at[x], p.Frames = n, append(p.Frames, x)
			}
			stack[k] = n
		}
		p.Sites[i].Site, p.Stacks = nil, append(p.Stacks, stack)
	}
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(p)
	return b.Bytes(), err
}

// Unpack makes h of what Pack gave.
func (h *HeapHistory) Unpack(b []byte) error {
	var p packedHistory
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&p); err != nil {
		return err
	}
	damaged := errors.New("damaged histories")
	if len(p.Stacks) != len(p.Sites) {
		return damaged
	}
	frames := make([]sites.StackFrame, len(p.Frames))
	for i, f := range p.Frames {
		frames[i] = sites.StackFrame{Class: f.Class, Method: f.Method, File: f.File, Native: f.Native}
		if f.Line != 0 {
			frames[i].Line = &p.Frames[i].Line
		}
	}
	for i, stack := range p.Stacks {
		site := make([]sites.StackFrame, len(stack))
		for k, n := range stack {
			if n < 0 || int(n) >= len(frames) {
				return damaged
			}
			site[k] = frames[n]
		}
		p.Sites[i].Site = site
	}
	*h = p.HeapHistory
	// gob does not distinguish empty from nil; JSON does.
	h.Collections, h.Seconds = append([]uint64{}, h.Collections...), append([]float64{}, h.Seconds...)
	h.Classes, h.Sites = append([]History{}, h.Classes...), append([]History{}, h.Sites...)
	return nil
}
