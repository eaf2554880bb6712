//go:build unix

package graph

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// cpu gives the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkBuild builds the graph of a heap of GRAPH_OBJECTS (1 million) objects; the figures to look at are objects a
// second of CPU and the peak of bytes an object, the listing included.
func BenchmarkBuild(b *testing.B) {
	n, _ := strconv.Atoi(os.Getenv("GRAPH_OBJECTS"))
	if n == 0 {
		n = 1_000_000
	}
	for b.Loop() {
		b.StopTimer()
		l := generated(n)
		slots := len(l.Slots)
		runtime.GC()
		b.StartTimer()
		last, before := cpu(), ""
		first := last
		g, err := Build(l, func(s string) {
			now := cpu()
			if testing.Verbose() {
				fmt.Printf("%s %v\n", before, now-last)
			}
			last, before = now, s
		})
		if err != nil {
			b.Fatal(err)
		}
		if testing.Verbose() {
			fmt.Printf("%s %v\n", before, cpu()-last)
		}
		b.ReportMetric(float64(n)/(cpu()-first).Seconds(), "objects/cpu-s")
		b.ReportMetric(float64(slots)/float64(n), "slots/object")
		b.ReportMetric(float64(len(g.vertex))/float64(n), "live")
	}
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	b.ReportMetric(float64(u.Maxrss)*1024/float64(n), "peak-B/object")
}
