package trace

import "bytes"

// Meta is a decoded META block.
type Meta struct {
	JVM    JVM
	HasJVM bool // a META may hold notes and remarks alone
	Notes  []Note

	Sampling  []Sampling
	SitesCut  []SitesCut
	Unlisted  []Unlisted
	Storms    []Storm
	Exhausted []Exhausted
	Process   []Process
	Killed    []Killed
	Resource  Resource // nil: the block says nothing of it
}

// Defs is a decoded DEFS block. Order within each kind is that of the block; what has gone is gone after all
// definitions of the block.
type Defs struct {
	Types   []Type
	Loaders []Loader
	Methods []Method
	Frames  []Frame
	Threads []Thread

	Candidates []Candidate
	Scanned    []Scanned

	GoneTypes, GoneLoaders []uint64 // ids; a probe's, no agent writes them
}

// The decoders below share their errors: *KindError for a block of another kind, *TooNewError for one of a newer
// version, *CorruptError for anything else, with the offset in the block's payload. Texts are copied and made valid
// UTF-8 (see CleanString); token blobs alias the block's payload and are checked only when they are read.

// rows reads every event of a block and hands it to each, which returns "" or what is wrong with it.
func rows(b Block, kind Kind, each func(r *row) (why string, err error)) error {
	if err := b.check(kind); err != nil {
		return err
	}
	c := cursor{buf: b.Payload}
	var r row
	for c.more() {
		at := c.pos
		r.read(&c, &b)
		if !c.ok() {
			break
		}
		why, err := each(&r)
		if err != nil {
			// The error of a blob counts from the blob's start; blobs stand last in their events.
			if ce, ok := err.(*CorruptError); ok {
				ce.Kind, ce.Event = kind, r.ev.Name
				ce.Offset += int64(c.pos - len(r.text[0]))
			}
			return err
		}
		if why != "" {
			c.pos = at
			c.fail(why)
		}
	}
	return c.corrupt(kind, r.ev)
}

// DecodeMeta decodes a META block. A second `jvm` event is corrupt. Notes by which an older agent made a remark are
// given as that.
func DecodeMeta(b Block) (Meta, error) {
	var m Meta
	err := rows(b, KindMeta, func(r *row) (string, error) {
		n := &r.num
		if r.ev.Tag != TagJVM {
			m.remark(r)
			return "", nil
		}
		if m.HasJVM {
			return "second jvm event", nil
		}
		m.HasJVM = true
		m.JVM = JVM{
			ABI: n[0], Major: n[1], Collector: n[2], PID: n[3], StartMS: n[4], T0WallMS: n[5], HeapBase: n[6],
			HeapWords: n[7],
			Align:     n[8], RegionWords: n[9], Flags: n[10], Depth: n[11], Interval: n[12], MaxHeap: n[13],
			Session: r.str(0), VM: r.str(1), Probe: r.str(2),
		}
		if !(&TypeTable{}).SetAlign(m.JVM.Align) {
			return "align out of range", nil
		}
		return "", nil
	})
	if b.Version == 1 && b.Seq == 0 { // the agent's
		m.readOldNotes()
	}
	return m, err
}

// DecodeDefs decodes a DEFS block.
func DecodeDefs(b Block) (Defs, error) {
	var d Defs
	err := rows(b, KindDefs, func(r *row) (string, error) {
		n := &r.num
		switch r.ev.Tag {
		case TagType:
			t := Type{ID: n[0], Flags: n[1], Size: n[2], Log2: n[3], Loader: n[4], Word: n[5], Name: r.str(0)}
			d.Types = append(d.Types, t)
			return t.check(), nil
		case TagLoader:
			d.Loaders = append(d.Loaders, Loader{n[0], r.str(0)})
		case TagMethod:
			lines, why := decodeLines(r.text[4])
			d.Methods = append(d.Methods, Method{
				ID: n[0], Class: r.str(0), Name: r.str(1), Sig: r.str(2), File: r.str(3), Flags: n[1], Lines: lines,
			})
			return why, nil
		case TagFrame:
			d.Frames = append(d.Frames, Frame{ID: n[0], Parent: n[1], Method: n[2], BCI: int64(n[3])})
			if n[0] == n[1] {
				return "frame is its own parent", nil
			}
		case TagThread:
			d.Threads = append(d.Threads, Thread{n[0], n[1], r.str(0)})
		case TagTypeGone:
			d.GoneTypes = append(d.GoneTypes, n[0])
		case TagLoaderGone:
			d.GoneLoaders = append(d.GoneLoaders, n[0])
		case TagCandidate:
			d.Candidates = append(d.Candidates, Candidate{Type: n[0], Method: n[1], BCI: n[2], Flags: n[3]})
		case TagScanned:
			d.Scanned = append(d.Scanned, Scanned{GC: n[0], Blind: n[1]})
		}
		return "", nil
	})
	return d, err
}

// DecodeSamples decodes a SAMPLES block; ids and times are absolute.
func DecodeSamples(b Block) ([]Sample, error) {
	out := make([]Sample, 0, len(b.Payload)/16) // most take 10 to 16 bytes
	var id, time uint64
	based := false
	err := rows(b, KindSamples, func(r *row) (string, error) {
		n := &r.num
		if r.ev.Tag == TagWatched {
			return "", readWatched(out, r)
		}
		if r.ev.Tag == TagSampleBase {
			time, id, based = n[0], n[1], true
			return "", nil
		}
		id += n[0]
		time += n[1]
		switch {
		case !based:
			return "sample before samplebase", nil
		case id == 0 || id > MaxSampleID:
			return "sample id out of range", nil
		case time > MaxTime:
			return "time out of range", nil
		case len(out) == MaxRecords:
			return "too many samples", nil
		}
		out = append(out, Sample{ID: id, Time: time, Thread: n[2], Type: n[3], Size: n[4], Interval: n[5], Frame: n[6]})
		return "", nil
	})
	if len(out) == 0 {
		return nil, err
	}
	return out, err
}

// readWatched marks the samples of a block that are watched, which stand before the blob.
func readWatched(samples []Sample, r *row) error {
	at := make(map[uint64]uint64, 16)
	err := readRecords(r.text[0], r.ev, func(rec *record) { at[rec[0]] = rec[1] })
	for i := range samples {
		if n, ok := at[samples[i].ID]; ok {
			samples[i].Chances = n
		}
	}
	return err
}

// DecodeEpoch decodes an EPOCH block. A block without a pause, or with two, is corrupt.
func DecodeEpoch(b Block) (*Epoch, error) {
	e := &Epoch{}
	pauses := 0
	err := rows(b, KindEpoch, func(r *row) (string, error) {
		n := &r.num
		switch r.ev.Tag {
		case TagPause:
			e.Pause = Pause{
				GC: n[0], Kind: n[1], Flags: n[2], Depth: n[3], Start: n[4], Dur: n[5], Probe: n[6], JVMGC: n[7],
				PhaseStart: n[8],
				Cause:      r.str(0), Interval: n[9],
			}
			if pauses++; pauses > 1 {
				return "second pause", nil
			}
		case TagSpace:
			return addSpace(&e.Spaces, n), nil
		case TagRegions:
			return "", addRegions(&e.Regions, r)
		case TagAllocs:
			e.Allocs = append(e.Allocs, r.text[0])
		case TagMoves:
			e.Moves = append(e.Moves, r.text[0])
		case TagBirths:
			e.Births = append(e.Births, r.text[0])
		case TagFreed:
			return "", addRanges(&e.Freed, r)
		case TagResolved:
			return "", readRecords(r.text[0], r.ev, func(rec *record) {
				e.Resolved = append(e.Resolved, SampleAddr{rec[0], rec[1]})
			})
		case TagSited:
			return "", readRecords(r.text[0], r.ev, func(rec *record) {
				e.Sited = append(e.Sited, SitedAddr{rec[0], rec[1]})
			})
		case TagUseScope:
			e.UseScope = r.str(0)
		case TagUses:
			return "", readRecords(r.text[0], r.ev, func(rec *record) {
				e.Uses = append(e.Uses, Use{rec[0], rec[1], rec[2], rec[3]})
			})
		case TagSampleDead:
			return "", readRecords(r.text[0], r.ev, func(rec *record) { e.SampleDead = append(e.SampleDead, rec[0]) })
		case TagCycle:
			if e.HasCycle {
				return "second cycle", nil
			}
			e.Cycle, e.HasCycle = Cycle{n[0], n[1], n[2], n[3], n[4]}, true
		case TagStops:
			return "", readRecords(r.text[0], r.ev, func(rec *record) {
				e.Stops = append(e.Stops, Stop{rec[0], rec[1]})
			})
		case TagSurvived:
			return "", readRecords(r.text[0], r.ev, func(rec *record) { e.Survived = append(e.Survived, rec[0]) })
		case TagUnwatched:
			return "", readRecords(r.text[0], r.ev, func(rec *record) { e.Unwatched = append(e.Unwatched, rec[0]) })
		case TagCensus:
			return "", readCensus(r.text[0], func(row CensusRow) { e.Census = append(e.Census, row) })
		default:
			return e.takeLost(r)
		}
		return "", nil
	})
	if err == nil && pauses == 0 {
		err = &CorruptError{Kind: KindEpoch, Offset: int64(len(b.Payload)), Why: "no pause"}
	}
	return e, err
}

// takeLost takes in an event of version 3.
func (e *Epoch) takeLost(r *row) (why string, err error) {
	switch r.ev.Tag {
	case TagLost:
		if e.Lost.Since != 0 {
			return "second lost", nil
		}
		e.Lost.Since = r.num[0]
	case TagCleared:
		return addSet(&e.Lost.Cleared, r)
	case TagUnknown:
		return addSet(&e.Lost.Unknown, r)
	case TagUncounted:
		err = readRecords(r.text[0], r.ev, func(rec *record) {
			e.Uncounted = append(e.Uncounted, UncountedRow{rec[0], rec[1], CensusCell{rec[2], rec[3]},
				CensusCell{rec[4], rec[5]}})
		})
	}
	return "", err
}

// DecodeSlice decodes a SLICE block. A block without exactly one slice and one total is corrupt.
func DecodeSlice(b Block) (*Slice, error) {
	s := &Slice{}
	slices, totals := 0, 0
	err := rows(b, KindSlice, func(r *row) (string, error) {
		n := &r.num
		switch r.ev.Tag {
		case TagSlice:
			s.GC, s.Ramp, s.N, s.Reason, s.Flags, s.Left, s.Uncounted = n[0], n[1], n[2], n[3], n[4], n[5], n[6]
			s.Time, s.Probe = n[7], n[8]
			if slices++; slices > 1 {
				return "second slice", nil
			}
		case TagPending:
			return addSet(&s.Pending, r)
		case TagListed:
			return addSet(&s.Listed, r)
		case TagSpace:
			return addSpace(&s.Spaces, n), nil
		case TagRegions:
			return "", addRegions(&s.Regions, r)
		case TagList:
			s.Lists = append(s.Lists, r.text[0])
		case TagAgain:
			s.Again = append(s.Again, r.text[0])
		case TagLiveSamples:
			return "", addLive(&s.Samples, r)
		case TagSampleTypes:
			return "", readRecords(r.text[0], r.ev, func(rec *record) {
				s.SampleTypes = append(s.SampleTypes, rec[0])
			})
		case TagSited:
			return "", readRecords(r.text[0], r.ev, func(rec *record) {
				s.Sited = append(s.Sited, SitedAddr{rec[0], rec[1]})
			})
		case TagTotal:
			s.Objects, s.Bytes = n[0], n[1]
			if totals++; totals > 1 {
				return "second total", nil
			}
		}
		return "", nil
	})
	if err == nil && (slices == 0 || totals == 0) {
		err = &CorruptError{Kind: KindSlice, Offset: int64(len(b.Payload)), Why: "no slice or no total"}
	}
	return s, err
}

// DecodeSync decodes a SYNC block. A block without exactly one syncpoint and one total is corrupt.
func DecodeSync(b Block) (*Sync, error) {
	s := &Sync{}
	points, totals := 0, 0
	err := rows(b, KindSync, func(r *row) (string, error) {
		n := &r.num
		switch r.ev.Tag {
		case TagSyncPoint:
			s.GC, s.Reason, s.Flags, s.Time, s.Probe = n[0], n[1], n[2], n[3], n[4]
			if points++; points > 1 {
				return "second syncpoint", nil
			}
		case TagSpace:
			return addSpace(&s.Spaces, n), nil
		case TagRegions:
			return "", addRegions(&s.Regions, r)
		case TagList:
			s.Lists = append(s.Lists, r.text[0])
		case TagLiveSamples:
			return "", addLive(&s.Samples, r)
		case TagWatching:
			return "", readRecords(r.text[0], r.ev, func(rec *record) {
				s.Watching = append(s.Watching, Watching{rec[0], rec[1], rec[2], rec[3] != 0})
			})
		case TagSited:
			return "", readRecords(r.text[0], r.ev, func(rec *record) {
				s.Sited = append(s.Sited, SitedAddr{rec[0], rec[1]})
			})
		case TagTotal:
			s.Objects, s.Bytes = n[0], n[1]
			if totals++; totals > 1 {
				return "second total", nil
			}
		}
		return "", nil
	})
	if err == nil && (points == 0 || totals == 0) {
		err = &CorruptError{Kind: KindSync, Offset: int64(len(b.Payload)), Why: "no syncpoint or no total"}
	}
	return s, err
}

// TokenBlobs gives each blob of walk or list tokens of an EPOCH, SYNC or SLICE block with its offset in the payload.
// Other events are checked as the decoders do; the blobs are not.
func TokenBlobs(b Block, each func(tag Tag, offset int, tokens []byte)) error {
	if err := b.check(b.Kind); err != nil {
		return err
	}
	c := cursor{buf: b.Payload}
	var r row
	for c.more() {
		r.read(&c, &b)
		if !c.ok() {
			break
		}
		switch r.ev.Tag {
		case TagAllocs, TagMoves, TagBirths, TagList, TagAgain:
			each(r.ev.Tag, c.pos-len(r.text[0]), r.text[0])
		}
	}
	return c.corrupt(b.Kind, r.ev)
}

// DecodeGap decodes a GAP block, which holds one event.
func DecodeGap(b Block) (Gap, error) {
	var g Gap
	seen := 0
	err := rows(b, KindGap, func(r *row) (string, error) {
		g = Gap{r.num[0], r.num[1], r.num[2], r.num[3]}
		seen++
		return "", nil
	})
	return g, one(err, KindGap, seen)
}

// DecodeEnd decodes an END block, which holds one event.
func DecodeEnd(b Block) (End, error) {
	var e End
	seen := 0
	err := rows(b, KindEnd, func(r *row) (string, error) {
		e = End{r.num[0], r.num[1], r.str(0)}
		seen++
		return "", nil
	})
	return e, one(err, KindEnd, seen)
}

func one(err error, kind Kind, seen int) error {
	if err == nil && seen != 1 {
		return &CorruptError{Kind: kind, Why: "not exactly one event"}
	}
	return err
}

func (r *row) str(i int) string { return CleanString(r.text[i]) }

// maxSpaces bounds the spaces of a block: there is one a kind, and generations have few.
const maxSpaces = 64

func addSpace(to *[]Space, n *[maxNums]uint64) string {
	s := Space{n[0], n[1], n[2], n[3], n[4], n[5]}
	if s.Bottom > s.Top || s.Top > s.End {
		return "space with bottom, top, end out of order"
	}
	if len(*to) == maxSpaces {
		return "too many spaces"
	}
	*to = append(*to, s)
	return ""
}

func addRegions(to *[]RegionRun, r *row) error {
	return readRecords(r.text[0], r.ev, func(rec *record) { *to = append(*to, RegionRun{rec[0], rec[1]}) })
}

func addRanges(to *[]Range, r *row) error {
	return readRecords(r.text[0], r.ev, func(rec *record) { *to = append(*to, Range{rec[0], rec[1]}) })
}

// addSet is addRanges for those of which a reader makes a set.
func addSet(to *[]Range, r *row) (why string, err error) {
	if err = addRanges(to, r); err == nil && len(*to) > MaxRanges {
		why = "too many ranges"
	}
	return why, err
}

func addLive(to *[]LiveSample, r *row) error {
	return readRecords(r.text[0], r.ev, func(rec *record) {
		*to = append(*to, LiveSample{rec[0], rec[1], rec[2], rec[3], rec[4], rec[5], rec[6]})
	})
}

// decodeLines reads a line table; why is "" if it is good.
func decodeLines(b []byte) (lines []LineEntry, why string) {
	c := cursor{buf: b}
	var bci, line uint64
	for c.more() {
		d := c.u()
		bci += d
		line += uint64(c.s())
		switch {
		case !c.ok():
		case d > MaxBCI || bci > MaxBCI || line > MaxLine:
			c.fail("line table out of range")
		case len(lines) == MaxLines:
			c.fail("line table too long")
		default:
			lines = append(lines, LineEntry{int(bci), int(line)})
		}
	}
	return lines, c.why
}

func appendLines(b []byte, lines []LineEntry) []byte {
	var prev LineEntry
	for _, l := range lines {
		b = appendS(appendU(b, uint64(l.BCI-prev.BCI)), int64(l.Line-prev.Line))
		prev = l
	}
	return b
}

// Equal says whether two blocks are the same, payload included.
func (b Block) Equal(o Block) bool {
	return b.Kind == o.Kind && b.Version == o.Version && b.Flags == o.Flags && b.Seq == o.Seq &&
		bytes.Equal(b.Payload, o.Payload)
}
