package fleetsql

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/internal/tables"
	"github.com/heapcam/heapcam/trace/site"
)

// What the fleet has: a recording of each service on each host, and a table of it every hour of a day.
const (
	hosts    = 100
	services = 10
	hours    = 24
	sites    = 55
	minute   = 60_000
	begin    = int64(1_795_600_000_000) // Unix ms
)

// leak is a site that grows in one version of a service; every recording of later versions has it, too.
type leak struct{ service, version, site int }

// planted are the leaks, from the version on that is named.
var planted = []leak{{0, 1, 7}, {3, 2, 11}, {3, 0, 40}, {6, 2, 3}, {9, 1, 54}}

// odd is a host where one site of one service is large, and does not grow.
var odd = struct{ host, service, site int }{42, 5, 20}

func version(host int) int { return host % 3 } // of all services on a host

func (l leak) in(service, host, at int) bool {
	return l.service == service && l.site == at && version(host) >= l.version
}

func serviceName(i int) string { return fmt.Sprintf("service-%d", i) }
func versionName(i int) string { return fmt.Sprintf("1.%d", i) }

// stackOf is a site's class and stack.
func stackOf(service, at int) (class string, stack []site.Frame) {
	class = fmt.Sprintf("org.example.s%d.Entry%d", service, at)
	for i := range 5 + at%7 {
		stack = append(stack, site.Frame{Class: fmt.Sprintf("org.example.s%d.C%d", service, i),
			Method: fmt.Sprintf("m%d", at), File: "C.java", Line: at + i})
	}
	return class, stack
}

// bytesOf is what lives of a site: a constant, a load that comes and goes, a cache that fills, or a step of a day's
// work, each with noise; and what leaks.
func bytesOf(rng *rand.Rand, service, host, at, hour int) uint64 {
	size := float64(1+at) * 200_000
	noise := 1 + rng.NormFloat64()/20
	b := size
	switch at % 5 {
	case 1: // load over the day
		b = size * (1 + 0.6*math.Sin(float64(hour+host%4)/24*2*math.Pi))
	case 2: // a cache fills in the first hours
		b = size * (1 - math.Exp(-float64(hour)/3))
	case 3: // a larger batch from some hour on
		if hour >= 6+host%12 {
			b = 2 * size
		}
	case 4: // it grows on every seventh host, which have more to do each hour
		if host%7 == 0 {
			b = size * (1 + float64(hour)/24)
		}
	}
	for _, l := range planted {
		if l.in(service, host, at) {
			b = size + float64(hour)*(2<<20)*(1+float64(host%5)/5)
		}
	}
	if odd.host == host && odd.service == service && odd.site == at {
		b *= 40
	}
	return uint64(b * noise)
}

// makeFleet writes the tables of a thousand recordings below dir, as agents lay them out, and gives rows and bytes.
func makeFleet(t *testing.T, dir string) (rows, bytes int64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for service := range services {
		for host := range hosts {
			who := tables.Whose{Service: serviceName(service), Version: versionName(version(host)), Namespace: "shop",
				Host: fmt.Sprintf("host-%d", host), Recording: fmt.Sprintf("%016x%016x", service, host)}
			var s []tables.SiteRow
			var k []tables.StackRow
			var c []tables.CollectionRow
			for hour := range hours {
				at := begin + int64(hour)*60*minute
				for i := range sites {
					class, stack := stackOf(service, i)
					text := site.Join(stack)
					s = append(s, tables.SiteRow{Whose: who, TimeMS: at, GC: uint64(hour), Class: class,
						SiteID: site.ID(class, stack), StackID: site.StackID(text),
						Bytes: bytesOf(rng, service, host, i, hour), Objects: 1})
					if hour == 0 {
						k = append(k, tables.StackRow{StackID: site.StackID(text), Stack: text})
					}
				}
				c = append(c, tables.CollectionRow{Whose: who, TimeMS: at, GC: uint64(hour), Kind: "young",
					PauseNS: uint64(1+version(host)) * 1e6})
			}
			name := filepath.Join("service="+who.Service, "date=2026-11-26", who.Host+".parquet")
			for _, n := range []int64{write(t, dir, "sites", name, s), write(t, dir, "stacks", name, k),
				write(t, dir, "collections", name, c), write(t, dir, "leaks", name, verdicts(who, service, host))} {
				bytes += n
			}
			rows += int64(len(s) + len(k) + len(c))
		}
	}
	return rows, bytes
}

// verdicts are those of an incident: what was planted, and a suspect.
func verdicts(who tables.Whose, service, host int) (out []tables.LeakRow) {
	for _, l := range planted {
		if l.in(service, host, l.site) {
			class, stack := stackOf(service, l.site)
			onset := begin + int64(l.version)*60*minute + int64(host)*minute
			out = append(out, tables.LeakRow{Whose: who, Kind: "leak", Class: class, SiteID: site.ID(class, stack),
				StackID: site.StackID(site.Join(stack)), OnsetFromMS: onset - minute, OnsetToMS: onset,
				BytesPerSecond: 600})
		}
	}
	class, stack := stackOf(service, 2)
	return append(out, tables.LeakRow{Whose: who, Kind: "suspect", Class: class, SiteID: site.ID(class, stack)})
}

// write writes a file of a table; it gives its size.
func write[T any](t *testing.T, dir, table, name string, rows []T) int64 {
	t.Helper()
	f := create(t, filepath.Join(dir, table, name))
	defer f.Close()
	w := tables.NewParquet[T](f, tables.Schema(table))
	for _, r := range rows {
		if err := w.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	n, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func create(t *testing.T, name string) *os.File {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
