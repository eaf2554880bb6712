package trace

import (
	"fmt"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"
)

// header reads the #defines of probe/heapcam_abi.h. Only the forms that the header promises are understood: integers,
// shifts of one, one subtraction, strings.
func header(t *testing.T) (nums map[string]int64, strs map[string]string) {
	t.Helper()
	src, err := os.ReadFile("../probe/heapcam_abi.h")
	if err != nil {
		t.Fatal(err)
	}
	nums, strs = map[string]int64{}, map[string]string{}
	comment := regexp.MustCompile(`(?s)/\*.*?\*/`)
	for _, line := range strings.Split(comment.ReplaceAllString(string(src), ""), "\n") {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "#define" {
			continue
		}
		expr := strings.Join(f[2:], " ")
		if s, ok := strings.CutPrefix(expr, `"`); ok {
			strs[f[1]] = strings.TrimSuffix(s, `"`)
			continue
		}
		v, err := eval(expr)
		if err != nil {
			t.Fatalf("%s: %v", f[1], err)
		}
		if _, twice := nums[f[1]]; twice {
			t.Errorf("%s is defined twice", f[1])
		}
		nums[f[1]] = v
	}
	return nums, strs
}

var shift = regexp.MustCompile(`^1(?:LL)? << (\d+)$`)

func eval(expr string) (int64, error) {
	expr = strings.TrimSpace(expr)
	if strings.HasPrefix(expr, "(") && strings.HasSuffix(expr, ")") &&
		strings.Count(expr, "(") == strings.Count(expr, ")") {
		if inner := expr[1 : len(expr)-1]; !strings.Contains(inner, ") - ") || strings.HasPrefix(inner, "(") {
			expr = inner
		}
	}
	if left, ok := strings.CutSuffix(expr, ") - 1"); ok {
		v, err := eval(strings.TrimPrefix(left, "("))
		return v - 1, err
	}
	if m := shift.FindStringSubmatch(expr); m != nil {
		var n uint
		fmt.Sscan(m[1], &n)
		return 1 << n, nil
	}
	v, ok := new(big.Int).SetString(strings.TrimSuffix(expr, "LL"), 0)
	if !ok {
		return 0, fmt.Errorf("can not evaluate %q", expr)
	}
	return v.Int64(), nil
}

// TestHeaderAgrees compares the C header with the Go table: each number that both sides have is the same, and none that
// Go has is missing in C.
func TestHeaderAgrees(t *testing.T) {
	nums, strs := header(t)
	want := map[string]int64{
		"HC_ABI_VERSION": ABIVersion, "HC_FORMAT_VERSION": ProbeFormatVersion,
		"HC_FORMAT_CONCURRENT": ConcurrentVersion,
		"HC_FORMAT_SLICES":     SliceFormatVersion,
		"HC_FORMAT_REFS":       RefsFormatVersion, "HC_FORMAT_RESOURCE": ResourceVersion,
		"HC_FORMAT_REFSAMPLES": RefSamplesVersion,
		"HC_FORMAT_CANDIDATES": CandidatesVersion, "HC_FORMAT_SITED": SitedVersion,
		"HC_FORMAT_LISTED_SITES": ListedSitesVersion,
		"HC_FORMAT_USES":         UsesVersion, "HC_USE_BLIND": UseBlind, "HC_MADE_CLONEABLE": MadeCloneable,
		"HC_MADE_THROWABLE": MadeThrowable,
		"HC_RP_FIRST":       RefFirst, "HC_RP_LAST": RefLast, "HC_RF_STATIC": RefStatic,
		"HC_RC_INSTANCE": RefInstance, "HC_RC_OBJARRAY": RefObjArray, "HC_RC_ARRAY": RefArray,
		"HC_RC_MIRROR": RefMirror, "HC_RC_REFERENCE": RefReference, "HC_RC_CHUNK": RefChunk,
		"HC_RC_FILLER": RefFiller, "HC_RS_STRONG": RefStrong, "HC_RS_SOFT": RefSoft, "HC_RS_FINAL": RefFinal,
		"HC_RS_WEAK": RefWeak, "HC_RS_PHANTOM": RefPhantom, "HC_RE_DEFINES": RefDefines,
		"HC_RE_RESOLVED": RefResolved, "HC_RR_OTHER": RootOther, "HC_RR_JNI_GLOBAL": RootJNIGlobal,
		"HC_RR_JNI_LOCAL": RootJNILocal, "HC_RR_STACK": RootStack, "HC_RR_SYSTEM_CLASS": RootSystemClass,
		"HC_RR_MONITOR": RootMonitor, "HC_RR_THREAD": RootThread, "HC_RR_LOADER": RootLoader,
		"HC_SLICE_FIRST": SliceFirst, "HC_SLICE_LAST": SliceLast, "HC_SLICE_UNCOMPACTED": SliceUncompacted,
		"HC_BLOCK_HEADER_SIZE": BlockHeaderSize, "HC_BLOCK_ALIGN": BlockAlign, "HC_BF_PARTIAL": BlockPartial,
		"HC_BLOCK_OFF_KIND": 0, "HC_BLOCK_OFF_VERSION": 1, "HC_BLOCK_OFF_FLAGS": 2, "HC_BLOCK_OFF_LENGTH": 4,
		"HC_BLOCK_OFF_SEQ": 8,

		"HC_COLLECTOR_SERIAL": CollectorSerial, "HC_COLLECTOR_PARALLEL": CollectorParallel,
		"HC_COLLECTOR_G1":  CollectorG1,
		"HC_COLLECTOR_ZGC": CollectorZGC, "HC_COLLECTOR_SHENANDOAH": CollectorShenandoah,
		"HC_COLLECTOR_EPSILON": CollectorEpsilon, "HC_CF_OPEN": CycleOpen, "HC_SPACE_HEAP": SpaceHeap,
		"HC_PAUSE_MINOR": PauseMinor, "HC_PAUSE_MAJOR": PauseMajor, "HC_PAUSE_READING": PauseReading,
		"HC_JF_COMPRESSED_OOPS": JVMCompressedOops, "HC_JF_COMPRESSED_CLASS": JVMCompressedClass,
		"HC_JF_COMPACT_HEADERS": JVMCompactHeaders, "HC_JF_AT_START": JVMAtStart, "HC_JF_NO_SAMPLING": JVMNoSampling,
		"HC_DEPTH_SAMPLES": DepthSamples, "HC_DEPTH_SURVIVORS": DepthSurvivors, "HC_DEPTH_FULL": DepthFull,
		"HC_TF_ARRAY": TypeArray, "HC_TF_VARIABLE": TypeVariable, "HC_TF_FILLER": TypeFiller,
		"HC_TF_HIDDEN":   TypeHidden,
		"HC_TF_OBJARRAY": TypeObjArray,
		"HC_MF_NATIVE":   MethodNative, "HC_MF_HIDDEN": MethodHidden, "HC_BCI_NATIVE": BCINative,
		"HC_THREAD_VIRTUAL": ThreadVirtual,
		"HC_PAUSE_YOUNG":    PauseYoung, "HC_PAUSE_MIXED": PauseMixed, "HC_PAUSE_FULL": PauseFull,
		"HC_PAUSE_REMARK":  PauseRemark,
		"HC_PAUSE_CLEANUP": PauseCleanup, "HC_PAUSE_WALK": PauseWalk, "HC_PAUSE_UNKNOWN": PauseUnknown,
		"HC_PF_EXACT": PauseExact, "HC_PF_SYNC_FOLLOWS": PauseSyncFollows, "HC_PF_EVAC_FAILED": PauseEvacFailed,
		"HC_PF_MISSED": PauseMissed, "HC_PF_FAULT": PauseFault, "HC_PF_EDEN_KEPT": PauseEdenKept,
		"HC_PF_LEFT_OUT":     PauseLeftOut,
		"HC_PF_MISSED_SHIFT": PauseMissedShift, "HC_PF_MISSED_MAX": 1<<(32-PauseMissedShift) - 1,
		"HC_SPACE_FREE": SpaceFree, "HC_SPACE_EDEN": SpaceEden, "HC_SPACE_SURVIVOR": SpaceSurvivor,
		"HC_SPACE_OLD":       SpaceOld,
		"HC_SPACE_HUMONGOUS": SpaceHumongous, "HC_SPACE_HUMONGOUS_CONT": SpaceHumongousCont,
		"HC_SPACE_ARCHIVE": SpaceArchive,
		"HC_SYNC_FIRST":    SyncFirst, "HC_SYNC_ROTATION": SyncRotation, "HC_SYNC_FULL": SyncFull,
		"HC_SYNC_EVAC_FAILED": SyncEvacFailed,
		"HC_SYNC_MISSED":      SyncMissed, "HC_SYNC_FAULT": SyncFault, "HC_SYNC_LOST": SyncLost,
		"HC_SYNC_RECONNECT": SyncReconnect,
		"HC_SYNC_WALK":      SyncWalk, "HC_SYNC_GC": SyncGC, "HC_SYNC_DEPTH": SyncDepth,
		"HC_SF_EDEN": SyncEdenListed, "HC_SF_FIRST": SyncFirstOfSession, "HC_SF_UNCOMPACTED": SyncUncompacted,
		"HC_CENSUS_BORN_YOUNG": 1 << CensusBornYoung, "HC_CENSUS_BORN_OLD": 1 << CensusBornOld,
		"HC_CENSUS_PROMOTED":   1 << CensusPromoted,
		"HC_CENSUS_DIED_YOUNG": 1 << CensusDiedYoung, "HC_CENSUS_DIED_OLD": 1 << CensusDiedOld,
		"HC_BUCKET_0": Bucket0, "HC_BUCKET_1": Bucket1, "HC_BUCKET_2_3": Bucket2to3, "HC_BUCKET_4_7": Bucket4to7,
		"HC_BUCKET_8_15": Bucket8up, "HC_BUCKET_OLD": BucketOld,
		"HC_GAP_OVERFLOW": GapOverflow, "HC_GAP_VIOLATION": GapViolation, "HC_GAP_AWAY": GapAway,
		"HC_GAP_STORE":   GapStore,
		"HC_GAP_SAMPLES": GapSamples,
		"HC_END_DEATH":   EndDeath, "HC_END_DETACHED": EndDetached, "HC_END_GAVE_UP": EndGaveUp,
		"HC_LOAD_TWICE": LoadTwice, "HC_LOAD_OPTIONS": LoadOptions, "HC_LOAD_JVMTI": LoadJVMTI,
		"HC_LOAD_REFUSED": LoadRefused,
		"HC_LOAD_ENDED":   LoadEnded,

		"HC_TOK_BITS": walkBits, "HC_TOK_DEAD": walkDead, "HC_TOK_MOVE": walkMove, "HC_TOK_LANE0": walkLane0,
		"HC_TOK_SKIP": walkSkip,
		"HC_TOK_END":  walkEnd, "HC_LANES": Lanes, "HC_LIST_END": listEnd, "HC_LIST_SKIP": listSkip,
		"HC_LIST_TYPE": listType,

		"HC_MAX_BLOCK": MaxBlock, "HC_MAX_STR": MaxStr, "HC_MAX_TYPE_ID": MaxTypeID, "HC_MAX_ADDR": MaxAddr,
		"HC_MAX_OBJECT": MaxObject,
		"HC_MAX_LOG2":   MaxLog2, "HC_MAX_INSTANCE": MaxInstance, "HC_MAX_ALIGN": MaxAlign, "HC_MAX_LINES": MaxLines,
		"HC_MAX_RECORDS": MaxRecords, "HC_MAX_RANGES": MaxRanges,
	}
	for _, b := range blockSpecs {
		want["HC_KIND_"+b.Name] = int64(b.Kind)
	}
	for _, e := range events {
		if e.Tag == TagRefColumns || e.Tag == TagKilled { // of the agent alone
			continue
		}
		want["HC_EV_"+strings.ToUpper(e.Name)] = int64(e.Tag)
	}
	for name, v := range want {
		if got, ok := nums[name]; !ok {
			t.Errorf("%s is missing in the header, want %d", name, v)
		} else if got != v {
			t.Errorf("%s is %d in the header, %d in Go", name, got, v)
		}
	}
	// What Go does not know of the stream's part must not be in the header. The ring's part is shmring's.
	for name := range nums {
		ring := strings.HasPrefix(name, "HC_RING_") || strings.HasPrefix(name, "HC_STATE_") ||
			strings.HasPrefix(name, "HC_EMERGENCY_") || strings.HasPrefix(name, "HC_REFERENCES_")
		if _, ok := want[name]; !ok && !ring {
			t.Errorf("%s stands in the header and not in the Go table", name)
		}
	}
	if strs["HC_RING_MAGIC"] != "HEAPCAMR" {
		t.Errorf("magic is %q", strs["HC_RING_MAGIC"])
	}
}

// TestHeaderRingAgreesWithPage compares the ring's offsets with the table of docs/format/shared-ring.md.
func TestHeaderRingAgreesWithPage(t *testing.T) {
	nums, _ := header(t)
	page, err := os.ReadFile("../docs/format/shared-ring.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \| (\w+) \|`).FindAllStringSubmatch(string(page), -1)
	seen := map[string]bool{}
	for _, r := range rows {
		name := "HC_RING_OFF_" + strings.ToUpper(r[2])
		seen[name] = true
		if got, ok := nums[name]; !ok || fmt.Sprint(got) != r[1] {
			t.Errorf("%s is %d in the header (there: %v), %s on the page", name, got, ok, r[1])
		}
	}
	for name := range nums {
		if strings.HasPrefix(name, "HC_RING_OFF_") && !seen[name] {
			t.Errorf("%s stands in the header and not on the page", name)
		}
	}
	if len(rows) < 30 {
		t.Errorf("only %d rows found on the page", len(rows))
	}
}

// TestPageAgrees holds the tables of docs/format/stream.md against the spec table.
func TestPageAgrees(t *testing.T) {
	page, err := os.ReadFile("../docs/format/stream.md")
	if err != nil {
		t.Fatal(err)
	}
	ticked := regexp.MustCompile("`([^`]+)`")
	paren := regexp.MustCompile(`\([^()]*\)`)
	kinds, evs := 0, 0
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 6 { // tag or kind, name, meaning, fields or events
			continue
		}
		tag, name, rest := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), cells[4]
		if ev := eventByName[strings.Trim(name, "`")]; ev != nil && name[0] == '`' {
			evs++
			if tag != fmt.Sprint(ev.Tag) {
				t.Errorf("%s has tag %s on the page", name, tag)
			}
			if ev.Form != BlobNone {
				if !strings.Contains(rest, "`blob`") && ev.Tag != TagLiveSamples {
					t.Errorf("%s is no blob on the page", name)
				}
				continue
			}
			var got, want []string
			for _, m := range ticked.FindAllStringSubmatch(paren.ReplaceAllString(rest, ""), -1) {
				got = append(got, m[1])
			}
			for _, f := range ev.Fields {
				want = append(want, f.Name+" "+map[FieldType]string{FieldU: "u", FieldS: "s", FieldStr: "str",
					FieldLines: "str"}[f.Type])
			}
			if strings.Join(got, ", ") != strings.Join(want, ", ") {
				t.Errorf("%s\n page: %s\n spec: %s", name, strings.Join(got, ", "), strings.Join(want, ", "))
			}
			continue
		}
		for _, b := range blockSpecs {
			if name == b.Name && tag == fmt.Sprint(uint8(b.Kind)) {
				kinds++
				var got, want []string
				for _, m := range ticked.FindAllStringSubmatch(rest, -1) {
					got = append(got, m[1])
				}
				for _, tg := range b.Tags {
					want = append(want, eventByTag[tg].Name)
				}
				if strings.Join(got, " ") != strings.Join(want, " ") {
					t.Errorf("%s\n page: %s\n spec: %s", name, got, want)
				}
			}
		}
	}
	if kinds != len(blockSpecs) || evs != len(events) {
		t.Errorf("page has %d of %d kinds and %d of %d events", kinds, len(blockSpecs), evs, len(events))
	}
}

// TestSpecFitsRows: rows and records are fixed arrays.
func TestSpecFitsRows(t *testing.T) {
	for _, e := range events {
		n, x := 0, 0
		for _, f := range e.Fields {
			if f.Type == FieldU || f.Type == FieldS {
				n++
			} else {
				x++
			}
		}
		if n > maxNums || x > maxTexts || len(e.Records) > maxRecordFields {
			t.Errorf("%s does not fit a row", e.Name)
		}
		if e.Form != BlobNone && len(e.Fields) != 1 {
			t.Errorf("%s: a blob must stand alone", e.Name)
		}
	}
	for i, b := range blockSpecs {
		if b.Kind != Kind(i+1) {
			t.Errorf("row %d of the block table is %v", i, b.Kind)
		}
	}
}
