package session

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/definitions"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/trace"
)

// profiled is a session of a JVM that has so many samples, each of a site of its own.
func profiled(samples int) *Session {
	s := &Session{defs: definitions.New(), heap: heapView{live: newLive()}}
	s.defs.Add(trace.Defs{Methods: []trace.Method{{ID: 1, Class: "Ldemo/Shop;", Name: "put", File: "Shop.java"}},
		Types: []trace.Type{{ID: 7, Name: "demo/Entry"}}})
	s.steer.cpu.process = quota.NewProcess(0, 0)
	s.heap.live.est.TakeFlows()
	for i := range uint64(samples) {
		s.defs.Add(trace.Defs{Frames: []trace.Frame{{ID: i + 1, Method: 1, Parent: i / 2}}})
		s.heap.live.samples([]trace.Sample{{ID: i, Type: 7, Size: 24 + i, Interval: 1, Frame: i + 1}})
	}
	return s
}

// TestProfileBound: a profile has the largest sites, and the others as one; nothing is lost.
func TestProfileBound(t *testing.T) {
	const samples = 3 * profileSites
	p := profiled(samples).profile(time.Now())
	if len(p.Rows) != profileSites+1 || p.Known {
		t.Fatalf("%d rows, known %v", len(p.Rows), p.Known)
	}
	sum, last := coverage.Estimate{}, p.Rows[profileSites]
	for i, r := range p.Rows {
		v := r.Values[Allocated]
		sum.Objects += v.Objects
		sum.Bytes += v.Bytes
		if i > 0 && i < profileSites && v.Bytes > p.Rows[i-1].Values[Allocated].Bytes {
			t.Fatalf("row %d is larger than the one before", i)
		}
	}
	if last.Class != "" || last.Stack[0].Name != otherSite || last.Values[Allocated].Objects < samples-profileSites ||
		sum.Objects < samples {
		t.Errorf("%+v, %+v in all", last, sum)
	}
	if r := p.Rows[0]; r.Class != "demo.Entry" || r.Stack[0].Name != "demo.Shop.put" || r.Stack[0].File != "Shop.java" {
		t.Errorf("%+v", r)
	}
	if r := profiled(0).profile(time.Now()); len(r.Rows) != 0 {
		t.Errorf("an empty JVM has %v", r.Rows)
	}
}

// TestProfileTimes: profiles are taken at whole intervals; the first interval only begins.
func TestProfileTimes(t *testing.T) {
	s := profiled(10)
	s.cfg.ProfileEvery = time.Minute
	n := 0
	s.hooks.Profile = func(p *Profile) {
		if n++; p.To.Sub(p.From) > time.Minute {
			t.Errorf("from %v to %v", p.From, p.To)
		}
	}
	at := time.Date(2026, 11, 26, 2, 0, 30, 0, time.UTC)
	for i := range 301 {
		s.profileDue(at.Add(time.Duration(i) * time.Second))
	}
	if n != 5 {
		t.Errorf("%d profiles in five minutes", n)
	}
}

func BenchmarkProfile(b *testing.B) {
	for _, n := range []int{2_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			cpu := time.Duration(0)
			for range b.N {
				s := profiled(n)
				from := threadCPU()
				s.profile(time.Now())
				cpu += threadCPU() - from
			}
			b.ReportMetric(float64(cpu)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
