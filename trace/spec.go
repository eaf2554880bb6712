package trace

import "strconv"

// Tag is the first byte of an event.
type Tag uint8

// Tags of events; part of the format.
const (
	TagJVM         Tag = 1
	TagNote        Tag = 2
	TagSampling    Tag = 3
	TagSitesCut    Tag = 4
	TagUnlisted    Tag = 5
	TagStorm       Tag = 6
	TagExhausted   Tag = 7
	TagType        Tag = 8
	TagLoader      Tag = 9
	TagMethod      Tag = 10
	TagFrame       Tag = 11
	TagThread      Tag = 12
	TagTypeGone    Tag = 13
	TagLoaderGone  Tag = 14
	TagCandidate   Tag = 15
	TagSampleBase  Tag = 16
	TagSample      Tag = 17
	TagWatched     Tag = 18
	TagScanned     Tag = 19
	TagProcess     Tag = 20
	TagResource    Tag = 21
	TagUseScope    Tag = 22
	TagKilled      Tag = 23
	TagPause       Tag = 24
	TagSpace       Tag = 25
	TagRegions     Tag = 26
	TagAllocs      Tag = 27
	TagMoves       Tag = 28
	TagBirths      Tag = 29
	TagFreed       Tag = 30
	TagResolved    Tag = 31
	TagSampleDead  Tag = 32
	TagCensus      Tag = 33
	TagLost        Tag = 34
	TagCleared     Tag = 35
	TagUnknown     Tag = 36
	TagUncounted   Tag = 37
	TagCycle       Tag = 38
	TagStops       Tag = 39
	TagSyncPoint   Tag = 40
	TagList        Tag = 41
	TagLiveSamples Tag = 42
	TagTotal       Tag = 43
	TagSlice       Tag = 44
	TagPending     Tag = 45
	TagListed      Tag = 46
	TagAgain       Tag = 47
	TagGap         Tag = 48
	TagEnd         Tag = 49
	TagSampleTypes Tag = 50
	TagSurvived    Tag = 51
	TagUnwatched   Tag = 52
	TagWatching    Tag = 53
	TagSited       Tag = 54
	TagUses        Tag = 55
	TagCovered     Tag = 56
	TagCollection  Tag = 57
	TagTypeSum     Tag = 58
	TagSiteSum     Tag = 59
	TagRefPart     Tag = 60
	TagReferences  Tag = 61
	TagRefClass    Tag = 62
	TagRefField    Tag = 63
	TagRefExtra    Tag = 64
	TagRefRoots    Tag = 65
	TagRefList     Tag = 66
	TagRefSlots    Tag = 67
	TagRefColumns  Tag = 68
	TagRefSamples  Tag = 69
)

// FieldType says how a field is written.
type FieldType uint8

// Types of fields.
const (
	FieldU     FieldType = iota // unsigned LEB128
	FieldS                      // zigzag signed LEB128
	FieldStr                    // u length and bytes
	FieldLines                  // a FieldStr that holds a line table
	FieldBlob                   // u32 length and bytes
)

// DeltaType says what the number of a record counts from.
type DeltaType uint8

// Delta types. DeltaPrev: from the same field of the record before. DeltaEnd: from the record before's end, which is
// this field plus the next one. The first record of a blob counts from 0.
const (
	DeltaNone DeltaType = iota
	DeltaPrev
	DeltaEnd
)

// BlobForm says what a blob holds.
type BlobForm uint8

// Forms of blobs.
const (
	BlobNone    BlobForm = iota
	BlobWalk             // walk tokens
	BlobList             // list tokens
	BlobRecords          // records, see Event.Records
	BlobCensus           // census rows
	BlobSlots            // references: 32 bits each, little-endian
	BlobColumns          // references by class and slot: package references
)

// Field is a field of an event or record.
type Field struct {
	Name  string
	Type  FieldType
	Max   uint64 // largest value (largest magnitude, for FieldS; of the sum, with Delta); more is corrupt
	Min   uint64
	Enum  *Enum // names of values for the text form, or nil
	Delta DeltaType
}

// Enum names the values of a field, or its bits if Bits is set.
type Enum struct {
	Name  string
	Bits  bool
	Names map[uint64]string
}

// Event is a row of the spec table.
type Event struct {
	Tag     Tag
	Name    string
	Since   uint8 // version of the blocks that may hold it, and of later ones; 0: of all
	Fields  []Field
	Form    BlobForm // if the one field is a FieldBlob
	Records []Field  // one record of a BlobRecords blob
	Record  string   // its name in the text form
}

// BlockSpec says which events a kind of block may hold.
type BlockSpec struct {
	Kind     Kind
	Name     string
	Tags     []Tag
	Reserved bool
}

func enum(name string, names ...string) *Enum {
	e := &Enum{Name: name, Names: map[uint64]string{}}
	for i, n := range names {
		if n != "" {
			e.Names[uint64(i)] = n
		}
	}
	return e
}

func bitsOf(name string, names ...string) *Enum {
	e := &Enum{Name: name, Bits: true, Names: map[uint64]string{}}
	for i, n := range names {
		e.Names[1<<i] = n
	}
	return e
}

// Enumerations of field values. Their names are those of the text form and of every other place that shows one.
var (
	CollectorNames = enum("collector", "", "serial", "parallel", "g1", "zgc", "shenandoah", "epsilon")
	JVMFlagNames   = bitsOf("jvm flags", "compressed_oops", "compressed_class", "compact_headers", "at_start",
		"no_sampling")
	DepthNames      = enum("depth", "", "samples", "survivors", "full")
	TypeFlagNames   = bitsOf("type flags", "array", "variable", "filler", "hidden", "objarray")
	MethodFlagNames = bitsOf("method flags", "native", "hidden")
	ThreadFlagNames = bitsOf("thread flags", "virtual")
	MadeFlagNames   = bitsOf("candidate flags", "cloneable", "throwable")
	PauseKindNames  = enum("pause kind", "", "young", "mixed", "full", "remark", "cleanup", "walk", "unknown",
		"minor", "major", "reading")
	CycleFlagNames = bitsOf("cycle flags", "open")
	UseFlagNames   = bitsOf("use flags", "blind")
	PauseFlagNames = bitsOf("pause flags", "exact", "sync_follows", "evac_failed", "missed", "fault", "eden_kept",
		"left_out")
	SpaceNames = enum("space kind", "free", "eden", "survivor", "old", "humongous", "humongous_cont", "archive",
		"heap")
	SyncReasonNames = enum("sync reason", "", "first", "rotation", "full", "evac_failed", "missed", "fault", "lost",
		"reconnect", "walk", "gc", "depth")
	SyncFlagNames       = bitsOf("sync flags", "eden", "first", "uncompacted")
	SliceFlagNames      = bitsOf("slice flags", "first", "last", "uncompacted")
	GapReasonNames      = enum("gap reason", "", "overflow", "violation", "away", "store", "samples")
	CollectionFlagNames = bitsOf("collection flags", "known", "synced")
	EndReasonNames      = enum("end reason", "", "death", "detached", "gave_up")
	KilledScopeNames    = enum("kill scope", "", "cgroup", "above", "machine")
	RefPartFlagNames    = bitsOf("part flags", "first", "last")
	RefKindNames        = enum("class kind", "instance", "objarray", "array", "mirror", "reference", "", "chunk",
		"filler")
	RefStrengthNames  = enum("strength", "strong", "soft", "final", "weak", "phantom")
	RefFieldFlagNames = bitsOf("field flags", "static")
	RefExtraNames     = enum("extra kind", "", "defines", "resolved")
	RefRootNames      = enum("root kind", "other", "jni_global", "jni_local", "stack", "system_class", "monitor",
		"thread", "loader")
	CensusFieldNames = [5]string{"born_young", "born_old", "promoted", "died_young", "died_old"}
)

// Shorthands for the table.
func u(name string, max uint64) Field  { return Field{Name: name, Type: FieldU, Max: max} }
func id(name string, max uint64) Field { return Field{Name: name, Type: FieldU, Min: 1, Max: max} }
func en(name string, min, max uint64, e *Enum) Field {
	return Field{Name: name, Type: FieldU, Min: min, Max: max, Enum: e}
}
func str(name string) Field { return Field{Name: name, Type: FieldStr, Max: MaxStr} }

var (
	blob      = []Field{{Name: "blob", Type: FieldBlob}}
	sampleIDs = []Field{{Name: "id", Type: FieldS, Max: MaxSampleID, Delta: DeltaPrev}}
)

// ranges are the records of a set of addresses, in ascending order or not.
var ranges = []Field{{Name: "start", Type: FieldS, Max: MaxAddr, Delta: DeltaEnd}, u("words", MaxAddr)}

const (
	maxAny   = 1<<64 - 1
	maxFlags = 1<<32 - 1
)

// blockSpecs and events are the spec table: decoders check by it, text form and parser derive from it, and tests hold
// stream.md and heapcam_abi.h against it.
var blockSpecs = []BlockSpec{
	{KindMeta, "META", []Tag{TagJVM, TagNote, TagSampling, TagSitesCut, TagUnlisted, TagStorm, TagExhausted,
		TagProcess, TagResource, TagKilled}, false},
	{KindDefs, "DEFS", []Tag{TagType, TagLoader, TagMethod, TagFrame, TagThread, TagTypeGone, TagLoaderGone,
		TagCandidate, TagScanned}, false},
	{KindSamples, "SAMPLES", []Tag{TagSampleBase, TagSample, TagWatched}, false},
	{KindEpoch, "EPOCH", []Tag{TagPause, TagSpace, TagRegions, TagAllocs, TagMoves, TagBirths, TagFreed, TagResolved,
		TagSampleDead, TagCensus, TagLost, TagCleared, TagUnknown, TagUncounted, TagCycle, TagStops, TagSurvived,
		TagUnwatched, TagSited, TagUses, TagUseScope}, false},
	{KindSync, "SYNC", []Tag{TagSyncPoint, TagSpace, TagRegions, TagList, TagLiveSamples, TagTotal, TagWatching,
		TagSited}, false},
	{KindGap, "GAP", []Tag{TagGap}, false},
	{KindEnd, "END", []Tag{TagEnd}, false},
	{KindSummary, "SUMMARY", []Tag{TagCovered, TagCollection, TagTypeSum, TagSiteSum}, false},
	{KindLayout, "LAYOUT", nil, true},
	{KindRefs, "REFS", []Tag{TagRefPart, TagReferences, TagRefClass, TagRefField, TagRefExtra, TagRefRoots,
		TagRefList, TagRefSlots, TagRefColumns,
		TagRefSamples}, false},
	{KindSlice, "SLICE", []Tag{TagSlice, TagPending, TagListed, TagSpace, TagRegions, TagList, TagAgain, TagLiveSamples,
		TagSampleTypes, TagTotal, TagSited}, false},
}

var events = []Event{
	{Tag: TagJVM, Name: "jvm", Fields: []Field{
		u("abi", MaxCount), u("major", MaxCount), en("collector", 1, 6, CollectorNames), u("pid", MaxCount),
		u("start_ms", MaxTime), u("t0_wall_ms", MaxTime), u("heap_base", maxAny), u("heap_words", MaxAddr),
		u("align", MaxAlign),
		u("region_words", MaxAddr), en("flags", 0, maxFlags, JVMFlagNames), en("depth", 1, 3, DepthNames),
		u("interval", MaxBytes), u("max_heap", MaxBytes), str("session"), str("vm"), str("probe"),
	}},
	{Tag: TagNote, Name: "note", Fields: []Field{u("time", MaxTime), str("text")}},
	{Tag: TagSampling, Name: "sampling", Since: 2, Fields: []Field{u("time", MaxTime), u("ns", MaxTime)}},
	{Tag: TagSitesCut, Name: "sitescut", Since: 2,
		Fields: []Field{u("time", MaxTime), u("samples", MaxCount), u("folded", MaxCount)}},
	{Tag: TagUnlisted, Name: "unlisted", Since: 2, Fields: []Field{
		u("time", MaxTime), u("gc", MaxCount), u("objects", MaxCount), u("bytes", MaxBytes), str("largest"),
	}},
	{Tag: TagStorm, Name: "storm", Since: 2, Fields: []Field{
		u("time", MaxTime), u("span", MaxTime), u("collections", MaxCount), u("ns", MaxTime),
	}},
	{Tag: TagExhausted, Name: "exhausted", Since: 2, Fields: []Field{u("time", MaxTime), u("failed", MaxCount)}},
	{Tag: TagProcess, Name: "process", Since: ResourceVersion, Fields: []Field{
		u("time", MaxTime), u("rss", MaxBytes), u("anon", MaxBytes), u("swap", MaxBytes), u("threads", MaxCount),
		u("heap", MaxBytes), u("metaspace", MaxBytes), u("code", MaxBytes), u("classes", MaxCount),
		u("limit", MaxBytes), u("used", MaxBytes),
	}},
	{Tag: TagResource, Name: "resource", Since: ResourceVersion, Fields: []Field{str("key"), str("value")}},
	{Tag: TagKilled, Name: "killed", Since: KilledVersion, Fields: []Field{
		u("time", MaxTime), en("scope", 1, 255, KilledScopeNames), u("limit", MaxBytes),
	}},
	{Tag: TagType, Name: "type", Fields: []Field{
		id("id", MaxTypeID), en("flags", 0, maxFlags, TypeFlagNames), u("size", MaxInstance), u("log2", MaxLog2),
		u("loader", MaxID),
		u("word", maxAny), str("name"),
	}},
	{Tag: TagLoader, Name: "loader", Fields: []Field{id("id", MaxID), str("name")}},
	{Tag: TagMethod, Name: "method", Fields: []Field{
		id("id", MaxID), str("class"), str("name"), str("sig"), str("file"), en("flags", 0, maxFlags, MethodFlagNames),
		{Name: "lines", Type: FieldLines, Max: MaxStr},
	}},
	{Tag: TagFrame, Name: "frame", Fields: []Field{
		id("id", MaxID), u("parent", MaxID), u("method", MaxID), {Name: "bci", Type: FieldS, Max: MaxBCI},
	}},
	{Tag: TagThread, Name: "thread",
		Fields: []Field{id("id", MaxID), en("flags", 0, maxFlags, ThreadFlagNames), str("name")}},
	{Tag: TagTypeGone, Name: "typegone", Fields: []Field{id("id", MaxTypeID)}},
	{Tag: TagLoaderGone, Name: "loadergone", Fields: []Field{id("id", MaxID)}},
	{Tag: TagCandidate, Name: "candidate", Since: CandidatesVersion, Fields: []Field{
		id("type", MaxTypeID), u("method", MaxID), u("bci", MaxBCI), en("flags", 0, maxFlags, MadeFlagNames),
	}},
	{Tag: TagScanned, Name: "scanned", Since: CandidatesVersion,
		Fields: []Field{u("gc", MaxCount), u("blind", MaxCount)}},
	{Tag: TagSampleBase, Name: "samplebase", Fields: []Field{u("time", MaxTime), u("id", MaxSampleID)}},
	{Tag: TagSample, Name: "sample", Fields: []Field{
		{Name: "did", Type: FieldS, Max: maxAny}, {Name: "dtime", Type: FieldS, Max: maxAny}, u("thread", MaxID),
		u("type", MaxTypeID),
		u("size", MaxBytes), u("interval", MaxBytes), u("frame", MaxID),
	}},
	{Tag: TagPause, Name: "pause", Fields: []Field{
		u("gc", MaxCount), en("kind", 1, 10, PauseKindNames), en("flags", 0, maxFlags, PauseFlagNames),
		en("depth", 1, 3, DepthNames),
		u("start", MaxTime), u("dur", MaxTime), u("probe", MaxTime), u("jvm_gc", MaxCount),
		u("phase_start", MaxTime), str("cause"),
		u("interval", MaxBytes),
	}},
	{Tag: TagSpace, Name: "space", Fields: []Field{
		en("kind", 0, 7, SpaceNames), u("bottom", MaxAddr), u("top", MaxAddr), u("end", MaxAddr),
		u("used_before", MaxBytes),
		u("used_after", MaxBytes),
	}},
	{Tag: TagRegions, Name: "regions", Fields: blob, Form: BlobRecords, Record: "region", Records: []Field{
		en("kind", 0, 6, SpaceNames), u("run", MaxAddr),
	}},
	{Tag: TagAllocs, Name: "allocs", Fields: blob, Form: BlobWalk},
	{Tag: TagMoves, Name: "moves", Fields: blob, Form: BlobWalk},
	{Tag: TagBirths, Name: "births", Fields: blob, Form: BlobList},
	{Tag: TagFreed, Name: "freed", Fields: blob, Form: BlobRecords, Record: "range", Records: ranges},
	{Tag: TagResolved, Name: "resolved", Fields: blob, Form: BlobRecords, Record: "at", Records: []Field{
		{Name: "id", Type: FieldS, Max: MaxSampleID, Delta: DeltaPrev},
		{Name: "addr", Type: FieldS, Max: MaxAddr, Delta: DeltaPrev},
	}},
	{Tag: TagSited, Name: "sited", Since: SitedVersion, Fields: blob, Form: BlobRecords, Record: "site",
		Records: []Field{{Name: "addr", Type: FieldS, Max: MaxAddr, Delta: DeltaPrev}, id("frame", MaxID)}},
	{Tag: TagUses, Name: "uses", Since: UsesVersion, Fields: blob, Form: BlobRecords, Record: "use", Records: []Field{
		{Name: "id", Type: FieldS, Max: MaxSampleID, Delta: DeltaPrev},
		u("since", MaxTime), u("used", MaxTime), en("flags", 0, maxFlags, UseFlagNames),
	}},
	{Tag: TagUseScope, Name: "usescope", Since: UsesVersion, Fields: []Field{str("packages")}},
	{Tag: TagSampleDead, Name: "sampledead", Fields: blob, Form: BlobRecords, Record: "dead", Records: []Field{
		{Name: "id", Type: FieldS, Max: MaxSampleID, Delta: DeltaPrev},
	}},
	{Tag: TagCensus, Name: "census", Fields: blob, Form: BlobCensus},
	{Tag: TagWatched, Name: "watched", Since: 3, Fields: blob, Form: BlobRecords, Record: "watch", Records: []Field{
		{Name: "id", Type: FieldS, Max: MaxSampleID, Delta: DeltaPrev}, id("chances", MaxCount),
	}},
	{Tag: TagCycle, Name: "cycle", Since: 3, Fields: []Field{
		u("begin", MaxTime), u("end", MaxTime), en("flags", 0, maxFlags, CycleFlagNames), u("pauses", MaxCount),
		u("longest", MaxTime),
	}},
	{Tag: TagStops, Name: "stops", Since: 3, Fields: blob, Form: BlobRecords, Record: "stop", Records: []Field{
		{Name: "start", Type: FieldS, Max: MaxTime, Delta: DeltaPrev}, u("dur", MaxTime),
	}},
	{Tag: TagSurvived, Name: "survived", Since: 3, Fields: blob, Form: BlobRecords, Record: "alive",
		Records: sampleIDs},
	{Tag: TagUnwatched, Name: "unwatched", Since: 3, Fields: blob, Form: BlobRecords, Record: "left",
		Records: sampleIDs},
	{Tag: TagWatching, Name: "watching", Since: 3, Fields: blob, Form: BlobRecords, Record: "watch", Records: []Field{
		{Name: "id", Type: FieldS, Max: MaxSampleID, Delta: DeltaPrev}, u("type", MaxTypeID), id("chances", MaxCount),
		u("survived", 1),
	}},
	{Tag: TagLost, Name: "lost", Since: 3, Fields: []Field{id("since", MaxCount)}},
	{Tag: TagCleared, Name: "cleared", Since: 3, Fields: blob, Form: BlobRecords, Record: "range", Records: ranges},
	{Tag: TagUnknown, Name: "unknown", Since: 3, Fields: blob, Form: BlobRecords, Record: "range", Records: ranges},
	{Tag: TagUncounted, Name: "uncounted", Since: 3, Fields: blob, Form: BlobRecords, Record: "row", Records: []Field{
		u("type", MaxTypeID), u("bucket", BucketOld), u("died", MaxCount), u("died_bytes", MaxBytes),
		u("gained", MaxCount), u("gained_bytes", MaxBytes),
	}},
	{Tag: TagSyncPoint, Name: "syncpoint", Fields: []Field{
		u("gc", MaxCount), en("reason", 1, 255, SyncReasonNames), en("flags", 0, maxFlags, SyncFlagNames),
		u("time", MaxTime),
		u("probe", MaxTime),
	}},
	{Tag: TagList, Name: "list", Fields: blob, Form: BlobList},
	{Tag: TagLiveSamples, Name: "livesamples", Fields: blob, Form: BlobRecords, Record: "live", Records: []Field{
		{Name: "id", Type: FieldS, Max: MaxSampleID, Delta: DeltaPrev},
		{Name: "addr", Type: FieldS, Max: MaxAddr, Delta: DeltaPrev},
		u("frame", MaxID), u("thread", MaxID), u("birth", MaxCount), u("interval", MaxBytes), u("size", MaxBytes),
	}},
	{Tag: TagTotal, Name: "total", Fields: []Field{u("objects", MaxCount), u("bytes", MaxBytes)}},
	{Tag: TagSlice, Name: "slice", Since: 3, Fields: []Field{
		u("gc", MaxCount), u("ramp", MaxCount), id("n", MaxCount), en("reason", 1, 255, SyncReasonNames),
		en("flags", 0, maxFlags, SliceFlagNames), u("left", MaxAddr), u("uncounted", MaxAddr), u("time", MaxTime),
		u("probe", MaxTime),
	}},
	{Tag: TagPending, Name: "pending", Since: 3, Fields: blob, Form: BlobRecords, Record: "range", Records: ranges},
	{Tag: TagListed, Name: "listed", Since: 3, Fields: blob, Form: BlobRecords, Record: "range", Records: ranges},
	{Tag: TagAgain, Name: "again", Since: 3, Fields: blob, Form: BlobList},
	{Tag: TagSampleTypes, Name: "sampletypes", Since: 3, Fields: blob, Form: BlobRecords, Record: "of",
		Records: []Field{u("type", MaxTypeID)}},
	{Tag: TagGap, Name: "gap", Fields: []Field{
		en("reason", 1, 255, GapReasonNames), u("epochs", MaxCount), u("samples", MaxCount), u("time", MaxTime),
	}},
	{Tag: TagCovered, Name: "covered", Fields: []Field{
		u("first", MaxCount), u("last", MaxCount), u("at", MaxCount), u("other_types", MaxCount),
		u("other_sites", MaxCount),
	}},
	{Tag: TagCollection, Name: "collection", Fields: []Field{
		id("gc", MaxCount), en("kind", 1, 10, PauseKindNames), en("flags", 0, maxFlags, CollectionFlagNames),
		u("start", MaxTime),
		u("dur", MaxTime), u("probe", MaxTime),
		u("sync", MaxTime), u("before", MaxBytes), u("eden", MaxBytes), u("survivor", MaxBytes), u("old", MaxBytes),
		u("humongous", MaxBytes),
		u("objects", MaxCount), u("bytes", MaxBytes), str("cause"),
	}},
	{Tag: TagTypeSum, Name: "typesum", Fields: []Field{
		id("type", MaxTypeID), u("objects", MaxCount), u("bytes", MaxBytes), u("born", MaxCount), u("died", MaxCount),
	}},
	{Tag: TagSiteSum, Name: "sitesum", Fields: []Field{
		id("type", MaxTypeID), u("frame", MaxID), u("samples", MaxCount), u("objects", MaxCount), u("bytes", MaxBytes),
	}},
	{Tag: TagRefPart, Name: "refpart", Since: 4, Fields: []Field{
		id("listing", MaxCount), id("n", MaxCount), en("flags", 0, maxFlags, RefPartFlagNames),
	}},
	{Tag: TagReferences, Name: "references", Since: 4, Fields: []Field{
		u("ticket", maxFlags), u("gc", MaxCount), u("time", MaxTime), u("dur", MaxTime), u("probe", MaxTime),
		u("objects", MaxCount), u("slots", MaxCount), u("roots", MaxCount), str("missing"), str("refused"),
	}},
	{Tag: TagRefClass, Name: "refclass", Since: 4, Fields: []Field{
		id("id", MaxTypeID), u("type", MaxTypeID), en("kind", 0, 7, RefKindNames), u("slots", MaxRefFields),
		u("statics", MaxRefFields), str("name"),
	}},
	{Tag: TagRefField, Name: "reffield", Since: 4, Fields: []Field{
		id("class", MaxTypeID), u("slot", MaxRefFields), en("flags", 0, maxFlags, RefFieldFlagNames),
		en("strength", 0, 4, RefStrengthNames), u("declared", MaxTypeID), str("name"), str("sig"),
	}},
	{Tag: TagRefExtra, Name: "refextra", Since: 4, Fields: blob, Form: BlobRecords, Record: "ref", Records: []Field{
		{Name: "from", Type: FieldS, Max: MaxRefWord, Delta: DeltaPrev},
		{Name: "to", Type: FieldS, Max: MaxRefWord, Delta: DeltaPrev}, en("kind", 1, 255, RefExtraNames),
	}},
	{Tag: TagRefRoots, Name: "refroots", Since: 4, Fields: blob, Form: BlobRecords, Record: "root", Records: []Field{
		{Name: "target", Type: FieldS, Max: MaxRefWord, Delta: DeltaPrev}, en("kind", 0, 255, RefRootNames),
		u("thread", MaxID), u("method", MaxID), u("bci", MaxBCI), u("depth", MaxCount),
	}},
	{Tag: TagRefList, Name: "reflist", Since: 4, Fields: blob, Form: BlobList},
	{Tag: TagRefSlots, Name: "refslots", Since: 4, Fields: blob, Form: BlobSlots},
	{Tag: TagRefColumns, Name: "refcolumns", Since: RefColumnsVersion, Fields: blob, Form: BlobColumns},
	{Tag: TagRefSamples, Name: "refsamples", Since: RefSamplesVersion, Fields: blob, Form: BlobRecords,
		Record: "sample", Records: []Field{{Name: "id", Type: FieldS, Max: MaxSampleID, Delta: DeltaPrev},
			{Name: "word", Type: FieldS, Max: MaxRefWord, Delta: DeltaPrev}}},
	{Tag: TagEnd, Name: "end", Fields: []Field{u("time", MaxTime), en("reason", 1, 255, EndReasonNames), str("text")}},
}

// Dispatch tables made from the spec once; read only.
var (
	eventByTag = func() (t [256]*Event) {
		for i := range events {
			t[events[i].Tag] = &events[i]
		}
		return
	}()
	eventByName = func() map[string]*Event {
		m := map[string]*Event{}
		for i := range events {
			m[events[i].Name] = &events[i]
		}
		return m
	}()
	allowed = func() (t [256][256]bool) {
		for _, b := range blockSpecs {
			for _, tag := range b.Tags {
				t[b.Kind][tag] = true
			}
		}
		return
	}()
	// written is the version of the blocks that this program writes: that of the newest event that they may hold, so
	// that an older program reads what it understands. SLICE and REFS blocks have no older version. In other blocks,
	// events of version 3 raise it where they are written.
	written = func() (v [256]uint8) {
		for _, b := range blockSpecs {
			v[b.Kind] = 1
			for _, tag := range b.Tags {
				if since := eventByTag[tag].Since; since < ConcurrentVersion || b.Kind == KindSlice ||
					b.Kind == KindRefs {
					v[b.Kind] = max(v[b.Kind], since)
				}
			}
		}
		return
	}()
)

// Known says whether this version defines the kind, reserved ones included.
func (k Kind) Known() bool { return k >= KindMeta && k <= KindSlice }

// Reserved says whether the kind has a number but no content yet.
func (k Kind) Reserved() bool { return k == KindLayout }

// String gives the name of the kind as the format page writes it, or its number.
func (k Kind) String() string {
	if k.Known() {
		return blockSpecs[k-1].Name
	}
	return strconv.Itoa(int(k))
}
