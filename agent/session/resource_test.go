package session

import (
	"encoding/json"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/vfs"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestResourceInEveryFile: each file of a recording says whose it is.
func TestResourceInEveryFile(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 6 << 10}
	r := newRig(t, mem)
	want := trace.Resource{trace.AttrService: "orders", trace.AttrVersion: "1.4.2"}
	r.stop()
	r.whose = want
	r.start()
	m := tracetest.New(tracetest.Config{Seed: 9})
	for range 8 {
		r.play(m, 4)
		r.drained()
	}
	r.stop()
	if len(mem.Files()) < 2 {
		t.Fatalf("%d files", len(mem.Files()))
	}
	for i, f := range mem.Files() {
		var got trace.Resource
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatal(err)
			}
			if b.Kind == trace.KindMeta {
				if m, err := trace.DecodeMeta(b); err != nil || m.HasJVM && b.Version == trace.ResourceVersion {
					t.Errorf("file %d: version %d: %v", i, b.Version, err)
				} else if m.Resource != nil {
					got = m.Resource
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("file %d: %v", i, got)
		}
	}
}

// TestRecordingFitsBlock: recording.json stays within a block, however much it has to say.
func TestRecordingFitsBlock(t *testing.T) {
	full := trace.Resource{}
	for _, k := range trace.ResourceKeys {
		full[k] = strings.Repeat(`é<"`, 20)
	}
	const most = math.MaxUint64
	s := Status{Collections: most, SyncPoints: most, Rotations: most, Emergencies: most, EmergenciesUnanswered: most,
		Dropped:       Drops{most, most, most, most, most, most, most},
		FilesEvicted:  math.MinInt64,
		SyncPointsCut: math.MinInt64, StoreFaults: math.MinInt64,
		ListingsSkipped: most, Switches: most, Incidents: most, IncidentsFailed: most,
		Missed: most, DetachedBy: strings.Repeat("x", 64)}
	c, err := json.Marshal(countersOf(&s))
	if err != nil {
		t.Fatal(err)
	}
	b, err := folder.Describe(folder.Identity{Session: strings.Repeat("f", 32), Name: strings.Repeat("n", 200),
		PID: math.MaxInt32, UID: math.MaxInt32, NSPID: math.MaxUint32, StartTicks: most, VM: strings.Repeat("v", 100),
		Probe: strings.Repeat("p", 40), Resource: full.Clean()}, c)
	if err != nil || len(b) > vfs.Block {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
