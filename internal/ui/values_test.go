package ui

import (
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "512k": 512 << 10, "16GiB": 16 << 30, "1.5m": 3 << 19,
		"64 MB": 64 << 20, "7b": 7, "1T": 1 << 40} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "k", "-1", "1x", "1e3", "99999999999T", "1..2"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", in, got)
		}
	}
}

func TestSpan(t *testing.T) {
	var l Span
	if err := l.Set("15m"); err != nil || l.Duration != 15*time.Minute {
		t.Errorf("15m: %v %v", l, err)
	}
	if err := l.Set("15MiB"); err != nil || l.Bytes != 15<<20 || l.Duration != 0 {
		t.Errorf("15MiB: %v %v", l, err)
	}
	if err := l.Set("soon"); err == nil {
		t.Error("soon is no duration")
	}
}

// TestSizeRoundTrip demands that what a flag prints is what it holds: values are handed on as text.
func TestSizeRoundTrip(t *testing.T) {
	for _, n := range []int64{0, 1, 1023, 1024, 100000, 1536, 1100 << 20, 512 << 10, 1<<30 + 1, 1 << 40, 1<<62 + 1} {
		s, again := Size(n), Size(0)
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%d is printed as %s, which is %d (%v)", n, &s, int64(again), err)
		}
	}
}

// TestUnits pins how sizes, durations and numbers are shown: one way everywhere.
func TestUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB",
		1<<20 - 1: "1.0 MiB",
		1 << 30:   "1.0 GiB", 5 << 39: "2.5 TiB", 1 << 53: "8192.0 TiB", -1536: "-1.5 KiB",
		-1 << 63: "-8388608.0 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0 s", 7: "7 ns", 1234: "1.2 µs", 1234567: "1.2 ms",
		250 * time.Millisecond: "250 ms", 999960 * time.Microsecond: "1 s", 999900: "1 ms", 99940: "99.9 µs",
		5930 * time.Millisecond: "5.9 s", 6 * time.Second: "6 s", 39612 * time.Millisecond: "39.6 s",
		59970 * time.Millisecond: "1 min", 90400 * time.Millisecond: "1 min 30 s", 59*time.Minute + 59700e6: "1 h",
		125 * time.Minute: "2 h 5 min", 47 * time.Hour: "47 h", 76 * time.Hour: "3 d 4 h", 48 * time.Hour: "2 d",
		-1234567: "-1.2 ms", 1<<63 - 1: "106751 d 23 h"} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d) = %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{36400 * time.Millisecond: "36 s", 588 * time.Second: "10 min",
		5*time.Hour + 10*time.Minute: "5 h", 290 * time.Hour: "12 d"} {
		if got := About(d); got != want {
			t.Errorf("About(%d) = %s, want %s", d, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0 %", 1e-9: "<0.01 %", 0.0004: "0.04 %", 0.00098: "0.1 %",
		0.0098: "1.0 %", 0.028: "2.8 %", 0.5: "50.0 %", 0.99954: ">99.9 %", 1: "100 %", 1.2: "120.0 %",
		-0.028: "-2.8 %"} {
		if got := Share(x); got != want {
			t.Errorf("Share(%v) = %s, want %s", x, got, want)
		}
	}
	if got := Part[uint64](1, 0) + Part(1, 3); got != "-33.3 %" {
		t.Error(got)
	}
	for want, n := range map[string]uint64{"0 files": 0, "1 file": 1, "2 files": 2, "1,234,567 files": 1234567} {
		if got := Plural(n, "file"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := SparkFrom(0, []float64{4, 4, 4, 9, 4, 4, 4, 2}, 4) + " " +
		SparkFrom(0, []float64{1, 2, 3, 4, 8}, 3) + " " +
		Spark([]float64{5, 9, 5, 5, 5, 5, 7}, 3); got != "▄█▄▂ ▁▃█ ▁█▄" {
		t.Errorf("curves: %s", got)
	}
	if got := Plural(3, "entry") + Spark([]float64{0, 1, 2}, 3) + Spark([]float64{1, 1}, 1) +
		Spark(nil, 9); got != "3 entries▁▄█▁" {
		t.Error(got)
	}
}
