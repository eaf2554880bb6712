package trace

// The encoders give blocks of the oldest version that has all their events, with seq 0, as the agent writes them; a
// caller that replaces a probe sets Seq and Version. They do not check ranges, remarks apart: what lies beyond
// limits.go is refused by the decoders.

// EncodeMeta is the inverse of DecodeMeta.
func EncodeMeta(m Meta) Block {
	var b []byte
	if m.HasJVM {
		j := &m.JVM
		b = put(b, TagJVM, []uint64{
			j.ABI, j.Major, j.Collector, j.PID, j.StartMS, j.T0WallMS, j.HeapBase, j.HeapWords, j.Align,
			j.RegionWords, j.Flags,
			j.Depth, j.Interval, j.MaxHeap,
		}, j.Session, j.VM, j.Probe)
	}
	out := block(KindMeta, m.appendRemarks(b))
	if m.HasJVM && Concurrent(m.JVM.Collector) {
		out.Version = ConcurrentVersion
	}
	if len(m.Process) > 0 || len(m.Resource) > 0 {
		out.Version = ResourceVersion
	}
	if len(m.Killed) > 0 {
		out.Version = KilledVersion
	}
	return out
}

// EncodeDefs is the inverse of DecodeDefs. A large set should be split by the caller: see MaxBlock.
func EncodeDefs(d Defs) Block {
	var b []byte
	for i := range d.Loaders {
		b = AppendLoader(b, d.Loaders[i])
	}
	for i := range d.Types {
		b = AppendType(b, d.Types[i])
	}
	for i := range d.Threads {
		b = AppendThread(b, d.Threads[i])
	}
	for i := range d.Methods {
		b = AppendMethod(b, d.Methods[i])
	}
	for i := range d.Frames {
		b = AppendFrame(b, d.Frames[i])
	}
	for _, id := range d.GoneTypes {
		b = put(b, TagTypeGone, []uint64{id})
	}
	for _, id := range d.GoneLoaders {
		b = put(b, TagLoaderGone, []uint64{id})
	}
	n := len(b)
	for _, c := range d.Candidates {
		b = put(b, TagCandidate, []uint64{c.Type, c.Method, c.BCI, c.Flags})
	}
	for _, s := range d.Scanned {
		b = put(b, TagScanned, []uint64{s.GC, s.Blind})
	}
	out := block(KindDefs, b)
	if len(b) > n {
		out.Version = CandidatesVersion
	}
	return out
}

// AppendType, AppendLoader, AppendMethod, AppendFrame and AppendThread append one event to the payload of a DEFS block,
// for writers that intern definitions as bytes.
func AppendType(b []byte, t Type) []byte {
	return put(b, TagType, []uint64{t.ID, t.Flags, t.Size, t.Log2, t.Loader, t.Word}, t.Name)
}

// AppendLoader: see AppendType.
func AppendLoader(b []byte, l Loader) []byte { return put(b, TagLoader, []uint64{l.ID}, l.Name) }

// AppendMethod: see AppendType.
func AppendMethod(b []byte, m Method) []byte {
	return put(b, TagMethod, []uint64{m.ID, m.Flags}, m.Class, m.Name, m.Sig, m.File, string(appendLines(nil, m.Lines)))
}

// AppendFrame: see AppendType.
func AppendFrame(b []byte, f Frame) []byte {
	return appendS(appendU(appendU(appendU(append(b, byte(TagFrame)), f.ID), f.Parent), f.Method), f.BCI)
}

// AppendThread: see AppendType.
func AppendThread(b []byte, t Thread) []byte {
	return put(b, TagThread, []uint64{t.ID, t.Flags}, t.Name)
}

// EncodeSamples is the inverse of DecodeSamples.
func EncodeSamples(samples []Sample) Block {
	var b []byte
	var prev Sample
	for i, s := range samples {
		if i == 0 {
			prev = Sample{ID: s.ID, Time: s.Time}
			b = put(b, TagSampleBase, []uint64{s.Time, s.ID})
		}
		b = put(b, TagSample, []uint64{s.ID - prev.ID, s.Time - prev.Time, s.Thread, s.Type, s.Size,
			s.Interval, s.Frame})
		prev = s
	}
	n := len(b)
	var watched []Sample
	for _, s := range samples {
		if s.Chances > 0 {
			watched = append(watched, s)
		}
	}
	b = putRecords(b, TagWatched, len(watched), func(i int) record { return record{watched[i].ID, watched[i].Chances} })
	return newer(block(KindSamples, b), len(b) > n)
}

// EncodeEpoch is the inverse of DecodeEpoch.
func EncodeEpoch(e *Epoch) Block {
	p := &e.Pause
	b := put(nil, TagPause, []uint64{
		p.GC, p.Kind, p.Flags, p.Depth, p.Start, p.Dur, p.Probe, p.JVMGC, p.PhaseStart, p.Interval,
	}, p.Cause)
	b = putPlace(b, e.Spaces, e.Regions)
	for _, blob := range e.Allocs {
		b = putBlob(b, TagAllocs, blob)
	}
	for _, blob := range e.Moves {
		b = putBlob(b, TagMoves, blob)
	}
	for _, blob := range e.Births {
		b = putBlob(b, TagBirths, blob)
	}
	b = putRanges(b, TagFreed, e.Freed)
	b = putRecords(b, TagResolved, len(e.Resolved), func(i int) record {
		return record{e.Resolved[i].ID, e.Resolved[i].Addr}
	})
	b = putRecords(b, TagSampleDead, len(e.SampleDead), func(i int) record { return record{e.SampleDead[i]} })
	if len(e.Census) > 0 {
		var blob []byte
		for _, r := range e.Census {
			mask := uint64(0)
			for i, c := range r.Cells {
				if c != (CensusCell{}) {
					mask |= 1 << i
				}
			}
			blob = appendCensusRow(blob, r, mask)
		}
		b = putBlob(b, TagCensus, blob)
	}
	n := len(b)
	if c := &e.Cycle; e.HasCycle {
		b = put(b, TagCycle, []uint64{c.Begin, c.End, c.Flags, c.Pauses, c.Longest})
	}
	b = putRecords(b, TagStops, len(e.Stops), func(i int) record { return record{e.Stops[i].Start, e.Stops[i].Dur} })
	b = putRecords(b, TagSurvived, len(e.Survived), func(i int) record { return record{e.Survived[i]} })
	b = putRecords(b, TagUnwatched, len(e.Unwatched), func(i int) record { return record{e.Unwatched[i]} })
	if l := &e.Lost; l.Since != 0 || len(l.Cleared)+len(l.Unknown)+len(e.Uncounted) > 0 {
		b = e.appendLost(b)
	}
	out := newer(block(KindEpoch, b), len(b) > n)
	if len(e.Sited) > 0 {
		out.Payload, out.Version = putSited(out.Payload, e.Sited), SitedVersion
	}
	if len(e.Uses) > 0 {
		out.Payload = putRecords(out.Payload, TagUses, len(e.Uses), func(i int) record {
			x := &e.Uses[i]
			return record{x.ID, x.Since, x.Used, x.Flags}
		})
		out.Version = UsesVersion
	}
	if e.UseScope != "" {
		out.Payload = put(out.Payload, TagUseScope, nil, e.UseScope)
		out.Version = UsesVersion
	}
	return out
}

// appendLost appends the events of version 3.
func (e *Epoch) appendLost(b []byte) []byte {
	if e.Lost.Since != 0 {
		b = put(b, TagLost, []uint64{e.Lost.Since})
	}
	b = putRanges(b, TagCleared, e.Lost.Cleared)
	b = putRanges(b, TagUnknown, e.Lost.Unknown)
	return putRecords(b, TagUncounted, len(e.Uncounted), func(i int) record {
		r := &e.Uncounted[i]
		return record{r.Type, r.Bucket, r.Died.Objects, r.Died.Bytes, r.Gained.Objects, r.Gained.Bytes}
	})
}

// EncodeSlice is the inverse of DecodeSlice.
func EncodeSlice(s *Slice) Block {
	b := put(nil, TagSlice, []uint64{s.GC, s.Ramp, s.N, s.Reason, s.Flags, s.Left, s.Uncounted, s.Time, s.Probe})
	b = putRanges(b, TagPending, s.Pending)
	b = putRanges(b, TagListed, s.Listed)
	b = putPlace(b, s.Spaces, s.Regions)
	for _, blob := range s.Lists {
		b = putBlob(b, TagList, blob)
	}
	for _, blob := range s.Again {
		b = putBlob(b, TagAgain, blob)
	}
	b = putLive(b, s.Samples)
	b = putRecords(b, TagSampleTypes, len(s.SampleTypes), func(i int) record { return record{s.SampleTypes[i]} })
	b = put(b, TagTotal, []uint64{s.Objects, s.Bytes})
	return listedSites(block(KindSlice, b), s.Sited)
}

// listedSites appends the sites of a listing to its block.
func listedSites(b Block, all []SitedAddr) Block {
	if len(all) > 0 {
		b.Payload, b.Version = putSited(b.Payload, all), ListedSitesVersion
	}
	return b
}

func putSited(b []byte, all []SitedAddr) []byte {
	return putRecords(b, TagSited, len(all), func(i int) record { return record{all[i].Addr, all[i].Frame} })
}

func putRanges(b []byte, tag Tag, all []Range) []byte {
	return putRecords(b, tag, len(all), func(i int) record { return record{all[i].Start, all[i].Words} })
}

func putLive(b []byte, all []LiveSample) []byte {
	return putRecords(b, TagLiveSamples, len(all), func(i int) record {
		l := &all[i]
		return record{l.ID, l.Addr, l.Frame, l.Thread, l.Birth, l.Interval, l.Size}
	})
}

// EncodeSync is the inverse of DecodeSync.
func EncodeSync(s *Sync) Block {
	b := put(nil, TagSyncPoint, []uint64{s.GC, s.Reason, s.Flags, s.Time, s.Probe})
	b = putPlace(b, s.Spaces, s.Regions)
	for _, blob := range s.Lists {
		b = putBlob(b, TagList, blob)
	}
	b = putLive(b, s.Samples)
	b = put(b, TagTotal, []uint64{s.Objects, s.Bytes})
	b = putRecords(b, TagWatching, len(s.Watching), func(i int) record {
		w := &s.Watching[i]
		alive := uint64(0)
		if w.Survived {
			alive = 1
		}
		return record{w.ID, w.Type, w.Chances, alive}
	})
	return listedSites(newer(block(KindSync, b), len(s.Watching) > 0), s.Sited)
}

// EncodeGap is the inverse of DecodeGap.
func EncodeGap(g Gap) Block {
	return block(KindGap, put(nil, TagGap, []uint64{g.Reason, g.Epochs, g.Samples, g.Time}))
}

// EncodeEnd is the inverse of DecodeEnd.
func EncodeEnd(e End) Block {
	return block(KindEnd, put(nil, TagEnd, []uint64{e.Time, e.Reason}, e.Text))
}

// newer gives b the version of events of collectors whose objects have no address, if it has one of them.
func newer(b Block, has bool) Block {
	if has {
		b.Version = max(b.Version, ConcurrentVersion)
	}
	return b
}

func block(k Kind, payload []byte) Block {
	return Block{Kind: k, Version: written[k], Payload: payload}
}

func putPlace(b []byte, spaces []Space, regions []RegionRun) []byte {
	for _, s := range spaces {
		b = put(b, TagSpace, []uint64{s.Kind, s.Bottom, s.Top, s.End, s.UsedBefore, s.UsedAfter})
	}
	return putRecords(b, TagRegions, len(regions), func(i int) record {
		return record{regions[i].Kind, regions[i].Run}
	})
}

// putRecords appends a blob of n records, or nothing if there are none.
func putRecords(b []byte, tag Tag, n int, at func(i int) record) []byte {
	if n == 0 {
		return b
	}
	var blob []byte
	var prev record
	for i := range n {
		rec := at(i)
		blob = appendRecord(blob, eventByTag[tag].Records, &rec, &prev)
		prev = rec
	}
	return putBlob(b, tag, blob)
}
