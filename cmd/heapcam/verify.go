package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/check"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// mismatch is one object that differs.
type mismatch struct {
	Kind    string `json:"kind"` // missing, extra, different
	GC      uint64 `json:"gc"`
	Address string `json:"address"` // of bytes, hexadecimal
	Known   string `json:"known,omitempty"`
	Listed  string `json:"listed,omitempty"`
}

func (m mismatch) String() string {
	switch m.Kind {
	case heap.Missing:
		return fmt.Sprintf("collection %d, address %s: missing: the replay has %s, the listing has nothing", m.GC,
			m.Address, m.Known)
	case heap.Extra:
		return fmt.Sprintf("collection %d, address %s: extra: the listing has %s, the replay has nothing", m.GC,
			m.Address, m.Listed)
	}
	return fmt.Sprintf("collection %d, address %s: different: the listing has %s, the replay has %s", m.GC, m.Address,
		m.Listed, m.Known)
}

type verifyReply struct {
	ui.Envelope
	Files      []verified        `json:"files"`
	SyncPoints uint64            `json:"sync_points"`
	Mismatches uint64            `json:"mismatches"`
	Explained  map[string]uint64 `json:"explained"`
	Damaged    int               `json:"damaged"`
	// References say of each reference listing whether it fits together.
	References []retention.Check `json:"references,omitempty"`
	// Verdicts say of each ring file whether it is sound, every byte read.
	Verdicts []ringstore.Verdict `json:"verdicts"`

	unreadable int    // blocks that cannot be decoded, though their frames are sound
	faults     int    // contradictions that nothing else explains
	worst      string // the recording to salvage
}

func newVerifyCmd() *cobra.Command {
	asJSON := false
	var salvage salvageOptions
	c := &cobra.Command{
		Use:   "verify FILE|DIR|JVM",
		Short: "Check that a recording is complete, undamaged and consistent",
		Long: `Use it on recordings that you want to rely on, and after a disk failed.

The verb reads every byte and replays the recording. At each sync point it compares the replayed heap with the list of
live objects there: address, type and size of every object. Then it replays each ring file on its own. Some collectors
change objects in ways that the recording does not show, such as fillers of G1. The verb counts such differences by
name, and they are no mismatch. Any other difference is a mismatch:

- missing: the replayed heap has an object that the list does not have.
- extra: the list has an object that the replayed heap does not have.
- different: the list has another type or size at this address.

Each file is sound, torn (cut off: its recorder was stopped, or it was not copied to the end), corrupt, or too new. A
file of another recording is foreign, and the verb does not read it. A file that was renamed or copied within its
folder is misplaced. Evicted files are not missing. The first line says how much of the recording is lost.

--salvage writes the sound parts of a damaged recording into a new file, and changes nothing.` + fileHelp,
		Example: `  heapcam verify incident.heapcam
  heapcam verify heapcam-recordings
  heapcam verify --salvage -o salvaged.heapcam incident.heapcam`,
		Args: exactly(1, readingArg+", or a folder of ring folders"),
		RunE: func(_ *cobra.Command, args []string) error {
			path := args[0]
			if _, err := os.Stat(path); err != nil && !bucket.Is(path) {
				if path, err = readingPath(path); err != nil {
					return err
				}
			}
			if salvage.on || salvage.file != "" {
				return salvage.run(path)
			}
			r, err := verifyAll(path)
			if err != nil {
				return err
			}
			if asJSON {
				err = ui.JSON(ui.Stdout, r)
			} else {
				printVerify(r)
			}
			switch {
			case err != nil:
				return err
			case r.Mismatches > 0:
				return status(exitMismatch)
			}
			return r.status()
		},
	}
	salvage.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "Print JSON (heapcam.verify/1).")
	exitsWith(c, "0", "All files are sound, torn or missing, and nothing differs.")
	exitsWith(c, "6", "A file is corrupt, foreign or misplaced.")
	exitsWith(c, "7", "A newer heapcam wrote a file.")
	exitsWith(c, "8", "A mismatch: the recording contradicts itself. Please report it.")
	return c
}

// status is 0 where nothing is damaged and nothing contradicts itself.
func (out *verifyReply) status() error {
	switch err := verdictStatus(out.Verdicts); {
	case err != nil:
		return err
	case out.unreadable > 0:
		return status(exitDamaged)
	case out.faults > 0:
		return status(exitMismatch)
	}
	return nil
}

func verifyAll(path string) (*verifyReply, error) {
	paths := []string{path}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		if _, ok := onDisk(path); !ok {
			if subs := ringFolders(path); len(subs) > 0 {
				paths = subs
			}
		}
	}
	out := &verifyReply{Envelope: ui.NewEnvelope("verify", 1), Files: []verified{}, Explained: map[string]uint64{}}
	for _, p := range paths {
		if bucket.Is(p) {
			return nil, usage("verify reads every byte: copy it first, with `heapcam pull %s -o FILE`", p)
		}
		vs, _ := ringstore.CheckPath(p) // openRecording reports what cannot be opened
		out.Verdicts = append(out.Verdicts, vs...)
		rec, err := openRecording(p)
		if err != nil {
			if w := ringstore.Worst(vs); len(paths) > 1 && w != ringstore.Sound && w != ringstore.Torn {
				continue // the verdicts say it
			}
			if _, _, serr := ringstore.Salvage(context.Background(), p, io.Discard); serr == nil && len(vs) > 0 {
				out.worst = p
				continue
			}
			return nil, err
		}
		err = out.recording(rec)
		rec.Close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (out *verifyReply) recording(rec *ringstore.Recording) error {
	all, err := verifyFiles(rec.Path, rec.Files)
	if err != nil {
		return err
	}
	out.unreadable += all.unreadable
	if all.Lost == 0 && verdictStatus(out.Verdicts) == nil {
		out.faults += len(all.Faults)
	}
	if out.worst == "" && (all.unreadable > 0 || verdictStatus(out.Verdicts) != nil) {
		out.worst = rec.Path
	}
	for _, p := range rec.Problems {
		all.Damage = append(all.Damage, p.Error())
	}
	results := []verified{all}
	if len(rec.Files) > 1 {
		for _, f := range rec.Files {
			v, err := verifyFiles(f.Name, []*ringstore.File{f})
			if err != nil {
				return err
			}
			v.Alone = true
			results = append(results, v)
		}
	}
	if err := out.checkReferences(rec); err != nil {
		return err
	}
	for i, v := range results {
		if i == 0 {
			out.SyncPoints += v.SyncPoints
			for k, n := range v.Explained {
				out.Explained[k] += n
			}
			if len(v.Damage) > 0 {
				out.Damaged++
			}
		}
		out.Mismatches += v.Mismatches
		out.Files = append(out.Files, v)
	}
	return nil
}

// maxListed bounds how many faults and damages of one file are listed.
const maxListed = 20

func verifyFiles(name string, files []*ringstore.File) (verified, error) {
	v := verified{File: name, Explained: map[string]uint64{}}
	src := newWholeSource(files...)
	defer src.Close()
	r := heap.NewReplay(src)
	sums := check.Summaries(r)
	counts := newCensusSource(files...)
	defer counts.Close()
	counted := check.Counts(heap.NewCensus(counts))
	last := 0.0
	for {
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return v, fmt.Errorf("%s: %w", name, err)
		}
		sums.Collection(c)
		counted.Collection(r, c)
		end := float64(c.Start+c.Dur) / 1e9
		v.collection(c, last, end)
		last = end
	}
	v.Lost += r.LostSince()
	for _, c := range r.Compared {
		v.Compared++
		v.Objects += c.Objects
		v.Mismatches += c.Mismatches()
		v.Missing += c.Missing
		v.Extra += c.Extra
		v.Different += c.Different
		for k, n := range c.Explained {
			v.Explained[k] += n
		}
		for _, d := range c.First {
			m := mismatch{d.Kind, c.GC, fmt.Sprintf("%#x", r.JVM.HeapBase+d.Addr*8), d.Known, d.Listed}
			if v.First == "" {
				v.First = m.String()
			}
			if len(v.Differences) < maxListed {
				v.Differences = append(v.Differences, m)
			}
		}
	}
	v.Summaries, v.SummaryRows, v.SummarySwept = sums.Summaries, sums.Collections+sums.Types+sums.Sites, sums.Swept
	if v.Mismatches += sums.Different; sums.Different > 0 {
		v.Faults = append(v.Faults, fmt.Sprintf("%d rows of summaries differ from the replay; the first: %s",
			sums.Different,
			sums.First))
	}
	v.Counted, v.CountedSwept = counted.Compared, counted.Swept
	if v.Mismatches += counted.Different; counted.Different > 0 {
		v.Faults = append(v.Faults, fmt.Sprintf("the counting replay differs after %d collections; the first: %s",
			counted.Different,
			counted.First))
	}
	v.Faults = append(v.Faults, r.Faults[:min(len(r.Faults), maxListed)]...)
	for _, e := range r.Damage {
		if !errors.Is(e, ringstore.ErrTorn) {
			v.unreadable++
		}
		if len(v.Damage) < maxListed {
			v.Damage = append(v.Damage, e.Error())
		}
	}
	return v, nil
}

func printVerify(r *verifyReply) {
	writeVerdict(r)
	ui.Section(ui.Stdout, "Ring files")
	printVerdicts(r.Verdicts)
	if len(r.Files) > 0 {
		ui.Section(ui.Stdout, "Replay against the listings at sync points")
	}
	told := slices.ContainsFunc(r.Verdicts, func(v ringstore.Verdict) bool { return v.State != ringstore.Sound })
	for _, v := range r.Files {
		if told { // above
			v.Damage = nil
		}
		printVerified(&v)
	}
	if len(r.Explained) > 0 {
		var ks []string
		for k, n := range r.Explained {
			ks = append(ks, fmt.Sprintf("%d %s", n, k))
		}
		sort.Strings(ks)
		ui.Fprintf(ui.Stdout, "  differences that the recorded facts explain, in objects: %s\n", strings.Join(ks, ", "))
	}
	if len(r.Files) > 1 {
		ui.Fprintf(ui.Stdout, "  in all: %s, %s\n", ui.Plural(r.SyncPoints, "sync point"), mismatches(r.Mismatches))
	}
	printReferences(r.References)
	if len(r.Files) == 0 && r.worst == "" {
		return
	}
	switch w := ringstore.Worst(r.Verdicts); {
	case w == ringstore.TooNew: // this program can save nothing of it
	case r.worst != "":
		out := "salvaged.heapcam"
		if filepath.Base(r.worst) == out {
			out = "salvaged2.heapcam"
		}
		ui.Next(ui.Stdout, ui.Sprintf("heapcam verify --salvage -o %s %s", ui.Text(out), ui.ShellWord(r.worst)))
	default:
		ui.Next(ui.Stdout, ui.Sprintf("heapcam report %s", ui.ShellWord(r.Files[0].File)))
	}
}

// writeVerdict says whether the recording can be trusted.
func writeVerdict(r *verifyReply) {
	style, text := r.verdict()
	ui.Headline(ui.Stdout, style, text)
}

// follows says whether b is a later ring file of the recording of a.
func follows(b, a string) bool {
	const name = len("00000001.hcr")
	return len(a) == len(b) && len(a) >= name && a[:len(a)-name] == b[:len(b)-name] && b > a &&
		strings.HasSuffix(a, ".hcr") && strings.HasSuffix(b, ".hcr")
}

func (out *verifyReply) verdict() (ui.Style, ui.Flow) {
	compared := uint64(0)
	for _, v := range out.Files {
		if !v.Alone {
			compared += v.Compared
		}
	}
	n, tornBefore := map[ringstore.State]uint64{}, false
	for _, v := range out.Verdicts {
		n[v.State]++
		tornBefore = tornBefore || v.State == ringstore.Torn && slices.ContainsFunc(out.Verdicts,
			func(w ringstore.Verdict) bool { return follows(w.File, v.File) })
	}
	rest := ui.Flow("")
	for _, v := range out.Files {
		if !v.Alone {
			rest += v.lost()
		}
	}
	if compared > 0 {
		rest += " All else agrees with the recorded listings."
	}
	files := func(s ...ringstore.State) ui.Flow {
		sum := uint64(0)
		for _, s := range s {
			sum += n[s]
		}
		return ui.Flow(ui.Plural(sum, "ring file"))
	}
	switch {
	case out.Mismatches > 0:
		return ui.Bad, ui.Flowf("Do not trust this recording: the replay differs from the recorded listings (%s). "+
			"Please report this.", ui.Flow(mismatches(out.Mismatches)))
	case n[ringstore.Corrupt] > 0:
		return ui.Bad, ui.Flowf("%s cannot be read wholly.", files(ringstore.Corrupt)) + rest +
			" `heapcam verify --salvage` writes what is sound into a new file."
	case n[ringstore.Foreign]+n[ringstore.Misplaced] > 0:
		return ui.Bad, ui.Flowf("%s of another recording, or under a wrong number, left out.",
			files(ringstore.Foreign, ringstore.Misplaced)) + rest
	case n[ringstore.TooNew] > 0:
		return ui.Bad, ui.Flowf("A newer heapcam wrote %s: use that version.", files(ringstore.TooNew)) + rest
	case out.unreadable > 0:
		return ui.Bad, "A part of the recording cannot be read." + rest
	case out.faults > 0:
		return ui.Bad, "Do not trust this recording: what the probe wrote contradicts itself. Please report this."
	case n[ringstore.Missing] > 0:
		return ui.Doubt, ui.Flowf("%s missing, and so are the collections in between.", files(ringstore.Missing)) + rest
	case tornBefore:
		return ui.Doubt, ui.Flowf("Collections may be missing: %s torn, and not only at the end of the recording.",
			files(ringstore.Torn)) + rest
	case n[ringstore.Torn] > 0:
		last := uint64(0)
		for _, v := range out.Files {
			last = max(last, v.LastGC)
		}
		return ui.Doubt, ui.Flowf("The recording was cut off after collection %d, as by a kill or an incomplete "+
			"copy. All "+
			"before that is sound.", last) + rest
	case out.Damaged > 0:
		return ui.Bad, "A part of the recording cannot be read." + rest
	case rest != "" && compared == 0:
		return ui.Doubt, "The files are sound, but a part of the recording is missing." + rest
	case slices.ContainsFunc(out.Files, func(v verified) bool { return !v.Alone && v.stateless() }):
		return ui.Good, "The recording is undamaged. It has no heap state to check: depth samples records none, and " +
			"it is the only depth with ZGC, Shenandoah and Epsilon."
	case compared == 0:
		return ui.Good, "The recording is undamaged. To check the replay as well, verify needs a sync point " +
			"that follows collections with object data; this recording has none."
	}
	return ui.Good, ui.Flowf("The recording is undamaged: %s compared with the replay, 0 mismatches.",
		ui.Flow(ui.Plural(compared, "sync point")))
}

// printVerified prints what is said of one recording or file.
func printVerified(v *verified) {
	what := ui.Path(v.File)
	if v.Alone {
		what = "opened alone: " + what
	}
	line := func(format string, args ...any) {
		ui.Fprintf(ui.Stdout, "    %s\n", ui.Sprintf(format, args...))
	}
	ui.Fprintf(ui.Stdout, "  %s\n", what)
	line("%s, heap state known after %d of them; %s, %d compared, "+
		"%s", ui.Text(ui.Plural(v.Collections, "collection")), v.Known,
		ui.Text(ui.Plural(v.SyncPoints, "sync point")), v.Compared, ui.Text(mismatches(v.Mismatches)))
	if v.Mismatches > 0 {
		line("%d missing, %d extra, %d different", v.Missing, v.Extra, v.Different)
	}
	for _, d := range v.Differences {
		line("%s", d)
	}
	swept := func(n uint64) ui.Text {
		if n == 0 {
			return ""
		}
		return ui.Sprintf("; live objects not compared for %d after a Remark or a failed evacuation", n)
	}
	if v.Summaries > 0 && !v.Alone {
		line("checked against %s, %d rows%s", ui.Text(ui.Plural(v.Summaries, "summary")), v.SummaryRows,
			swept(v.SummarySwept))
	}
	if v.Counted > 0 && !v.Alone {
		line("%s checked by a second replay, which only counts objects%s", ui.Text(ui.Plural(v.Counted, "collection")),
			swept(v.CountedSwept))
	}
	if v.Untold > 0 && !v.Alone {
		line("%s without object data, such as full collections (this is no damage):", ui.Text(ui.Plural(v.Untold,
			"pause")))
		line("  of %d objects listed after them, %d could be matched with objects before", v.Listed, v.Proven)
	}
	for _, s := range append(v.Faults, v.Damage...) {
		line("%s", ui.Prose(s))
	}
	if v.Lost > 0 && !v.Alone {
		line("%s lost", ui.Text(ui.Plural(v.Lost, "collection")))
	}
	if !v.Alone && v.NoEvents > 0 {
		collection.WriteMissed(ui.Stdout, "", 4, v.NoEvents)
	}
}

func mismatches(n uint64) string {
	if n == 1 {
		return "1 mismatch"
	}
	return fmt.Sprintf("%d mismatches", n)
}
