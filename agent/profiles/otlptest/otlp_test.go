// Package otlptest has the agent push profiles to the receiver of OpenTelemetry's collector, a real server of the
// protocol.
package otlptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/heapcam/heapcam/agent/profiles"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/trace"
)

// collector is a receiver that keeps what it gets, after it has failed some times.
type collector struct {
	url string

	mu    sync.Mutex
	fails int
	got   []pprofile.Profiles
}

func (c *collector) take(_ context.Context, p pprofile.Profiles) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails--; c.fails >= 0 {
		return errors.New("the next part of the pipeline is away")
	}
	x := pprofile.NewProfiles()
	p.CopyTo(x)
	c.got = append(c.got, x)
	return nil
}

func (c *collector) taken() []pprofile.Profiles { c.mu.Lock(); defer c.mu.Unlock(); return c.got }

func start(t *testing.T, fails int) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	c := &collector{url: "http://" + at, fails: fails}
	sink, err := xconsumer.NewProfiles(c.take)
	if err != nil {
		t.Fatal(err)
	}
	f := otlpreceiver.NewFactory().(xreceiver.Factory)
	cfg := f.CreateDefaultConfig()
	conf := confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": at}}})
	if err := conf.Unmarshal(cfg); err != nil {
		t.Fatal(err)
	}
	r, err := f.CreateProfiles(t.Context(), receivertest.NewNopSettings(f.Type()), cfg, sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Shutdown(context.Background()) })
	return c
}

// heap is a profile with some stacks, one of them without frames, one without a class.
func heap(jvm int) *session.Profile {
	to := time.Unix(int64(1_700_000_000+jvm), 0)
	p := &session.Profile{Of: session.Status{ID: fmt.Sprint("Shop-", jvm), Session: fmt.Sprint("s", jvm), Name: "Shop",
		Interval: 512 << 10, Resource: trace.Resource{trace.AttrService: "shop", trace.AttrVersion: "1.2",
			trace.AttrNamespace: "eu"}},
		From: to.Add(-time.Minute), To: to, GC: 7, Known: true}
	for i := range 40 {
		r := session.ProfileRow{Class: fmt.Sprint("demo.Entry", i%7)}
		for d := range i % 5 {
			r.Stack = append(r.Stack, session.ProfileFrame{Name: fmt.Sprint("demo.Shop.m", (i+d)%11), File: "Shop.java",
				Line: 10 + d})
		}
		r.Values[session.InUse] = coverage.Estimate{Objects: float64(3 * i), Bytes: float64(96 * i)}
		r.Values[session.Freed] = coverage.Estimate{Objects: float64(i % 2), Bytes: float64(i % 2 * 32)}
		p.Rows = append(p.Rows, r)
	}
	return p
}

// sums gives each value by type and stack of a profile in pprof's format.
func sums(t *testing.T, p *session.Profile) map[string]int64 {
	t.Helper()
	b, err := profiles.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	x, err := profile.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, s := range x.Sample {
		var frames []string
		for _, l := range s.Location {
			frames = append(frames, fmt.Sprintf("%s %s:%d", l.Line[0].Function.Name, l.Line[0].Function.Filename,
				l.Line[0].Line))
		}
		for i, v := range s.Value {
			if v != 0 {
				out[x.SampleType[i].Type+" "+x.SampleType[i].Unit+" "+strings.Join(frames, ";")] += v
			}
		}
	}
	return out
}

// otlpSums gives the same of what a collector has.
func otlpSums(all pprofile.Profiles, ids map[pprofile.ProfileID]int) map[string]int64 {
	d := all.Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	out := map[string]int64{}
	for _, p := range all.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		ids[p.ProfileID()]++
		for _, s := range p.Samples().All() {
			var frames []string
			for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
				line := d.LocationTable().At(int(l)).Lines().At(0)
				f := d.FunctionTable().At(int(line.FunctionIndex()))
				frames = append(frames, fmt.Sprintf("%s %s:%d", text(f.NameStrindex()), text(f.FilenameStrindex()),
					line.Line()))
			}
			k := text(p.SampleType().TypeStrindex()) + " " + text(p.SampleType().UnitStrindex()) + " " +
				strings.Join(frames, ";")
			out[k] += s.Values().At(0)
		}
	}
	return out
}

// TestOTLP: what a collector gets is what pprof's format says, value by value and stack by stack, and each JVM's
// profile arrives once, also if the pipeline fails at first.
func TestOTLP(t *testing.T) {
	const jvms = 3
	c := start(t, 2)
	h := profiles.New(profiles.Config{Every: time.Minute, URL: c.url, OTLP: true, Host: "h", Log: zerolog.Nop()})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); h.Run(ctx) }()
	defer func() { stop(); <-ended }()
	for i := range jvms {
		h.Take(heap(i))
	}
	for end := time.Now().Add(time.Minute); h.Status().Pushed < jvms; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", h.Status())
		}
	}
	if st := h.Status(); st.Dropped != 0 || st.Failed < 2 || len(c.taken()) != jvms {
		t.Errorf("%+v, %d requests taken", st, len(c.taken()))
	}
	ids := map[pprofile.ProfileID]int{}
	for i, p := range c.taken() {
		a := p.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
		want := map[string]any{"service.name": "shop", "service.version": "1.2", "service.namespace": "eu",
			"host.name": "h", "service.instance.id": fmt.Sprint("Shop-", i)}
		if !maps.Equal(a, want) {
			t.Errorf("%v", a)
		}
		if got, want := otlpSums(p, ids), sums(t, heap(i)); !maps.Equal(got, want) || len(got) == 0 {
			t.Errorf("JVM %d: %d sums, want %d\n%v\n%v", i, len(got), len(want), got, want)
		}
	}
	for id, n := range ids {
		if n != 1 {
			t.Errorf("%d profiles have the id %x", n, id)
		}
	}
	if len(ids) != jvms*int(session.ProfileValues)*2 {
		t.Errorf("%d profiles", len(ids))
	}
}
