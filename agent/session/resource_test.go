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

// TestNamedByProcess: attributes that the probe sends come before the agent's, in status, in the open file and in the
// next ones. They are cleaned, cannot say what uploads leave out, and change a bounded number of times.
func TestNamedByProcess(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 6 << 10}
	r := newRig(t, mem)
	r.stop()
	r.whose = trace.Resource{trace.AttrService: "unit", trace.AttrHost: "h", trace.AttrRedact: "true"}
	r.start()
	m := tracetest.New(tracetest.Config{Seed: 9})
	r.play(m, 2)
	say := func(version string) {
		r.commit([]trace.Block{trace.EncodeMeta(trace.Meta{Resource: trace.Resource{trace.AttrService: "orders",
			trace.AttrVersion: version, trace.OldEnv: "prod", trace.AttrRedact: "false", "password": "s3cret"}})})
		r.drained()
	}
	want := trace.Resource{trace.AttrService: "orders", trace.AttrVersion: "1_[2J", trace.AttrHost: "h",
		trace.AttrEnv: "prod", trace.AttrRedact: "true"}
	say("1\x1b[2J")
	r.wait(func() bool { return maps.Equal(r.s.Status().Resource, want) && maps.Equal(mem.Whose(), want) })
	r.play(m, 8)
	r.drained()
	for n := range 3 * maxNamed {
		say(strings.Repeat("2", n+1))
	}
	r.stop()
	want[trace.AttrVersion] = strings.Repeat("2", maxNamed-1)
	if got := r.s.Status().Resource; !maps.Equal(got, want) {
		t.Errorf("after many changes: %v", got)
	}
	var said []string
	for i, f := range mem.Files() {
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatal(err)
			}
			if m, err := trace.DecodeMeta(b); err == nil && m.Resource != nil {
				said = append(said, m.Resource[trace.AttrService]+" "+m.Resource[trace.AttrVersion])
				if _, other := m.Resource["password"]; other || i > 0 && m.Resource[trace.AttrService] != "orders" {
					t.Errorf("file %d: %v", i, m.Resource)
				}
			}
		}
	}
	if len(said) < 1+maxNamed || said[0] != "unit " || said[1] != "orders 1_[2J" {
		t.Errorf("%q", said)
	}
}
