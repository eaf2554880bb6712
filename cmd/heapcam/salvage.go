package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

type salvageOptions struct {
	on   bool
	file string
}

func (o *salvageOptions) add(c *cobra.Command) {
	c.Flags().BoolVar(&o.on, "salvage", false, "Write the sound parts into the file of --output. Nothing is changed.")
	c.Flags().StringVarP(&o.file, "output", "o", "", "File that --salvage writes; - is stdout. A file of "+
		"that name is replaced.")
}

func (o *salvageOptions) run(path string) (err error) {
	if !o.on || o.file == "" {
		return usage("verify: --salvage and -o OUT must be given together")
	}
	if from, err := os.Stat(path); err == nil {
		if to, err := os.Stat(o.file); err == nil && os.SameFile(from, to) {
			return usage("verify: --salvage changes nothing: -o must name another file than %s", path)
		}
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() && len(ringFiles(path)) == 0 {
		switch subs := ringFolders(path); len(subs) {
		case 0:
		case 1:
			path = subs[0]
		default:
			return usage("verify: --salvage takes one recording: %s contains %d, like %s", path, len(subs), subs[0])
		}
	}
	w, end, err := output(o.file)
	if err != nil {
		return err
	}
	defer func() { err = end(err) }()
	m, vs, err := ringstore.Salvage(context.Background(), path, w)
	if err != nil {
		return err
	}
	ui.Fprintf(ui.Stderr, "heapcam: salvaged %s, collections %d to %d\n", ui.Plural(uint64(len(m.Files)), "file"),
		m.FirstGC, m.LastGC)
	for _, v := range vs {
		if v.State != ringstore.Sound {
			ui.Fprintf(ui.Stderr, "heapcam: %s\n", verdictLine(v))
		}
	}
	return nil
}

// printVerdicts prints each file that is not sound, and how many are.
func printVerdicts(vs []ringstore.Verdict) {
	sound := uint64(0)
	for _, v := range vs {
		if v.State == ringstore.Sound {
			sound++
		}
		if v.State != ringstore.Sound || v.Open {
			ui.Fprintf(ui.Stdout, "  %s\n", verdictLine(v))
		}
	}
	if sound > 0 || len(vs) == 0 {
		ui.Fprintf(ui.Stdout, "  %s sound\n", ui.Plural(sound, "file"))
	}
}

func verdictLine(v ringstore.Verdict) ui.Text {
	switch v.State {
	case ringstore.Torn:
		if v.TornAt == v.Bytes && v.Bytes > 0 {
			break // whole frames may be missing behind the last one
		}
		if !strings.HasSuffix(v.File, ".hcr") {
			return ui.Sprintf("%s: cut off at byte %d", v.File, v.TornAt)
		}
		return ui.Sprintf("%s: torn at byte %d, %s before it sound", v.File, v.TornAt, ui.Plural(uint64(v.Frames),
			"frame"))
	case ringstore.Corrupt:
		if !strings.HasSuffix(v.File, ".hcr") {
			break
		}
		at := make([]string, 0, maxListed)
		for _, a := range v.At[:min(len(v.At), maxListed)] {
			at = append(at, fmt.Sprint(a))
		}
		return ui.Sprintf("%s: corrupt: %s at byte %s; %s sound; %s", v.File, ui.Plural(uint64(v.Corrupt), "frame"),
			strings.Join(at, ", "), ui.Plural(uint64(v.Frames), "frame"),
			strings.TrimPrefix(v.Why, v.File+": "))
	case ringstore.TooNew:
		return ui.Sprintf("%s: too new: its format version is %d; use a newer heapcam", v.File, v.Version)
	case ringstore.Sound:
		return ui.Sprintf("%s: sound up to its end, not closed: its recorder still writes to it, or was stopped",
			v.File)
	}
	return ui.Sprintf("%s: %s: %s", v.File, v.State, strings.TrimPrefix(v.Why, v.File+": "))
}

// verdictStatus is 0 where all files are sound, torn or missing.
func verdictStatus(vs []ringstore.Verdict) error {
	switch ringstore.Worst(vs) {
	case ringstore.Corrupt, ringstore.Foreign, ringstore.Misplaced:
		return status(exitDamaged)
	case ringstore.TooNew:
		return status(exitTooNew)
	}
	return nil
}
