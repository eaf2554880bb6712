package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestEvacuationFails runs G1 in a heap that is nearly full, so that it often finds no room for what old regions hold.
// At depth full each object of a collection was either there or came from a place that is known: what came from
// elsewhere was evacuated from an old region that the probe takes for untouched. Only fillers come from nowhere.
func TestEvacuationFails(t *testing.T) {
	if !full {
		t.Skip("not run: old regions that are not evacuated completely, a minute (make test-full)")
	}
	for range 4 {
		end := filepath.Join(t.TempDir(), "end")
		p := program{major: 25, gc: "G1", heap: "48m", main: "Crammed", args: []string{end, "40000"}, limit: "256MiB",
			opts: []string{"-XX:+UnlockExperimentalVMOptions", "-XX:G1ReservePercent=0", "-XX:G1HeapWastePercent=0",
				"-XX:G1MixedGCLiveThresholdPercent=100", "-XX:G1MixedGCCountTarget=64",
				"-XX:G1OldCSetRegionThresholdPercent=100", "-XX:MaxGCPauseMillis=10",
				"-XX:InitiatingHeapOccupancyPercent=20"},
			flags: []string{"--depth", "full"}}
		r := p.start(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		time.Sleep(12 * time.Second)
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.finish(t)
		rec := r.recorded(t)
		exact, failed := strangers(t, rec.dir)
		t.Logf("%d pauses with all moves, %d in which an evacuation failed", exact, failed)
		if failed == 0 || exact == 0 {
			t.Error("the program does not do what it is for")
		}
		verify(t, rec.dir, 1)
	}
}

// strangers counts pauses of G1 whose moves were recorded, and those in which an evacuation failed. It is an error if
// one of the former has objects that came from nowhere.
func strangers(t *testing.T, dir string) (exact, failed int) {
	t.Helper()
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	types, fillers, large := trace.NewTypeTable(8), map[uint32]bool{}, uint64(1<<20/8/2) // words, humongous
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			if b.Kind == trace.KindDefs {
				d, err := trace.DecodeDefs(b)
				if err != nil {
					t.Fatal(err)
				}
				for _, ty := range d.Types {
					fillers[uint32(ty.ID)] = ty.Flags&trace.TypeFiller != 0
				}
				if err := types.DefineAll(d.Types); err != nil {
					t.Fatal(err)
				}
			}
			if b.Kind != trace.KindEpoch {
				continue
			}
			e, err := trace.DecodeEpoch(b)
			if err != nil {
				t.Fatal(err)
			}
			if e.Pause.Flags&trace.PauseEvacFailed != 0 {
				failed++
			}
			if e.Pause.Flags&trace.PauseExact == 0 || e.Pause.Depth != trace.DepthFull {
				continue
			}
			exact++
			n := 0
			for _, blob := range e.Births {
				l := trace.NewListTokens(blob, types)
				for l.Next() {
					if l.Kind == trace.ListObject && !fillers[l.Type] && l.Words < large {
						n++
					}
				}
			}
			if n > 0 {
				t.Errorf("collection %d: %d objects came from nowhere", e.Pause.GC, n)
			}
		}
	}
	return exact, failed
}
