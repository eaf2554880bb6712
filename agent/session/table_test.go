package session

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/site"
)

// TestTableBeside: profiles and tables of one session each have all that was allocated, whichever is taken first.
func TestTableBeside(t *testing.T) {
	s := profiled(0)
	s.cfg.ProfileEvery, s.cfg.TableEvery = time.Minute, time.Hour
	var tabled, profiled float64
	s.hooks.Profile = func(p *Profile) {
		for _, r := range p.Rows {
			profiled += r.Values[Allocated].Objects
		}
	}
	s.hooks.Table = func(x *Table) {
		for _, r := range x.Sites {
			tabled += float64(r.AllocObjects)
		}
	}
	at := time.Date(2026, 11, 26, 2, 0, 30, 0, time.UTC)
	s.profileDue(at)
	s.tableDue(at)
	const n = 200
	for i := range uint64(n) {
		s.heap.live.samples([]trace.Sample{{ID: i, Type: 7, Size: 24, Interval: 1, Frame: 1}})
		at = at.Add(time.Minute)
		if i%2 == 0 {
			s.profileDue(at)
		}
		s.tableDue(at)
		s.profileDue(at)
	}
	s.hooks.Table(s.table(at))
	s.hooks.Profile(s.profile(at))
	if math.Abs(tabled-n) > 4 || math.Abs(profiled-n) > 1 {
		t.Errorf("of %d objects tables have %v, profiles %v", n, tabled, profiled)
	}
}

// TestTableBound: a table has the largest sites, the others as one row, and a bounded number of collections; ids are
// those that readers give.
func TestTableBound(t *testing.T) {
	s := profiled(0)
	s.cfg.TableEvery = time.Hour
	s.flowsOfProfiles()
	for i := range uint64(2 * tableSites) {
		s.defs.Add(trace.Defs{Frames: []trace.Frame{{ID: i + 1, Method: 1}}})
		s.heap.live.samples([]trace.Sample{{ID: i, Type: 7, Size: 24 + i, Interval: 1, Frame: i + 1}})
	}
	for i := range uint64(tableCollections + 5) {
		s.collectionRow(&trace.Epoch{Pause: trace.Pause{GC: i, Cause: "a\x1bb", Dur: 7}}, 9)
	}
	x := s.table(time.Now())
	if len(x.Sites) != tableSites+1 || len(x.Collections) != tableCollections || x.LeftOut != 5 {
		t.Fatalf("%d sites, %d collections, %d left out", len(x.Sites), len(x.Collections), x.LeftOut)
	}
	if c := x.Collections[3]; c.GC != 3 || c.Cause != "a_b" || c.PauseNS != 7 || c.UsedBytes != 9 {
		t.Errorf("%+v", c)
	}
	frames := []site.Frame{{Class: "demo.Shop", Method: "put", File: "Shop.java"}}
	if r := x.Sites[0]; r.Class != "demo.Entry" || r.SiteID != site.ID(r.Class, frames) ||
		r.StackID != site.StackID("demo.Shop.put") || len(x.Stacks) != 1 || x.Stacks[0].Stack != "demo.Shop.put" {
		t.Errorf("%+v %v", r, x.Stacks)
	}
	if y := s.table(time.Now()); len(y.Sites)+len(y.Collections) != 0 || y.LeftOut != 0 {
		t.Errorf("the next one repeats %+v", y)
	}
	f := coverage.Flow{}
	f.AddAll(coverage.Flow{coverage.Others: {Objects: 1}})
	f.AddAll(coverage.Flow{coverage.Others: {Objects: 2}})
	if f[coverage.Others].Objects != 3 {
		t.Errorf("%v", f)
	}
}

func BenchmarkTable(b *testing.B) {
	for _, n := range []int{2_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			s := profiled(n)
			s.cfg.TableEvery = time.Hour
			var took time.Duration
			for b.Loop() {
				from := threadCPU()
				s.table(time.Now())
				took += threadCPU() - from
				for i := range uint64(n) {
					s.heap.live.samples([]trace.Sample{{ID: i, Type: 7, Size: 24 + i, Interval: 1, Frame: i + 1}})
				}
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "cpu-us/table")
		})
	}
}
