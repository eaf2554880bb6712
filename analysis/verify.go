package analysis

import (
	"errors"
	"fmt"
	"io"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// FileVerdict is what verify says of one file.
type FileVerdict struct {
	File        string            `json:"file"`
	Verdict     string            `json:"verdict"` // sound, torn, corrupt, too new
	SyncPoints  int               `json:"sync_points"`
	Collections int               `json:"collections"`
	Mismatches  uint64            `json:"mismatches"`
	First       string            `json:"first_mismatch,omitempty"`
	Explained   map[string]uint64 `json:"explained"`
	Damage      []string          `json:"damage"`
}

// Verification is all of `heapcam verify`: each file opened alone, and the recording as a whole.
type Verification struct {
	Schema     string        `json:"schema"`
	Files      []FileVerdict `json:"files"`
	Whole      FileVerdict   `json:"whole"`
	SyncPoints int           `json:"sync_points"`
	Mismatches uint64        `json:"mismatches"`
}

// VerifyOne replays src and compares the state with each sync point.
func VerifyOne(name string, src heap.BlockSource, isTorn func(error) bool) FileVerdict {
	v := FileVerdict{File: name, Verdict: "sound", Explained: map[string]uint64{}, Damage: []string{}}
	r := heap.NewReplayer(src)
	for {
		c, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			var newer *trace.TooNewError
			v.Verdict = "corrupt"
			if errors.As(err, &newer) {
				v.Verdict = "too new"
			}
			v.Damage = append(v.Damage, err.Error())
			return v
		}
		v.Collections++
		if c.Synced {
			v.SyncPoints++
		}
	}
	for _, c := range r.Compared {
		v.Mismatches += c.Mismatches
		if v.First == "" && c.First != "" {
			v.First = fmt.Sprintf("collection %d: %s", c.GC, c.First)
		}
		for k, n := range c.Explained {
			v.Explained[k] += n
		}
	}
	for _, f := range r.Faults {
		v.Mismatches++
		if v.First == "" {
			v.First = f
		}
	}
	for _, d := range r.Damage {
		v.Damage = append(v.Damage, d.Error())
		if isTorn(d) && v.Verdict == "sound" {
			v.Verdict = "torn"
		} else if !isTorn(d) {
			v.Verdict = "corrupt"
		}
	}
	return v
}

// WriteText prints a line a file.
func (v *Verification) WriteText(w io.Writer) {
	for _, f := range v.Files {
		fmt.Fprintf(w, "%-8s %4d collections %4d sync points %4d mismatches  %s\n", f.Verdict, f.Collections, f.SyncPoints, f.Mismatches, f.File)
		for _, d := range f.Damage {
			fmt.Fprintf(w, "         %s\n", d)
		}
		if f.First != "" {
			fmt.Fprintf(w, "         %s\n", f.First)
		}
	}
	fmt.Fprintf(w, "whole    %4d collections %4d sync points %4d mismatches", v.Whole.Collections, v.Whole.SyncPoints, v.Whole.Mismatches)
	for k, n := range v.Whole.Explained {
		fmt.Fprintf(w, "; %d %s", n, k)
	}
	fmt.Fprintln(w)
	if v.Whole.First != "" {
		fmt.Fprintf(w, "         %s\n", v.Whole.First)
	}
}
