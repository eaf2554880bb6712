package ui

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bytes is how every size is shown: whole bytes below 1 KiB, else one decimal and a power of 1024: "1.0 GiB".
func Bytes[N int64 | uint64](n N) string {
	if n < 0 {
		return "-" + Bytes(uint64(-n))
	}
	if n < 1024 {
		return strconv.FormatUint(uint64(n), 10) + " B"
	}
	units := [...]string{"KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n)/1024, 0
	for ; f >= 1023.95 && i < len(units)-1; i++ { // which would be shown as 1024.0
		f /= 1024
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + units[i]
}

// Duration is how every duration is shown: two or three digits and the unit, from a minute on the two largest units:
// "1.2 ms", "5.9 s", "1 min 30 s", "2 h 5 min", "3 d 4 h". What is not 0 is not shown as 0.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-max(d, -math.MaxInt64))
	}
	two := func(big, small time.Duration, bigName, smallName string) string {
		d = d.Round(small)
		if rest := d % big / small; rest > 0 {
			return fmt.Sprintf("%d %s %d %s", d/big, bigName, rest, smallName)
		}
		return fmt.Sprintf("%d %s", d/big, bigName)
	}
	of := func(unit time.Duration, name string) string {
		x := float64(d) / float64(unit)
		digits := 1
		if x >= 99.95 {
			digits = 0
		}
		return strings.TrimSuffix(strconv.FormatFloat(x, 'f', digits, 64), ".0") + " " + name
	}
	switch {
	case d >= 48*time.Hour-30*time.Minute:
		return two(24*time.Hour, time.Hour, "d", "h")
	case d >= time.Hour-30*time.Second:
		return two(time.Hour, time.Minute, "h", "min")
	case d >= time.Minute-50*time.Millisecond:
		return two(time.Minute, time.Second, "min", "s")
	case d >= time.Second-500*time.Microsecond:
		return of(time.Second, "s")
	case d >= time.Millisecond-500:
		return of(time.Millisecond, "ms")
	case d >= time.Microsecond:
		return of(time.Microsecond, "µs")
	case d > 0:
		return fmt.Sprintf("%d ns", d)
	}
	return "0 s"
}

// Seconds is Duration of a number of them; what is longer than a time.Duration is shown as the longest one.
func Seconds(s float64) string {
	const most = float64(1<<63-1024) / 1e9
	if s != s {
		return Duration(0)
	}
	return Duration(time.Duration(max(-most, min(s, most)) * 1e9))
}

// Nanoseconds is Duration of a count of them.
func Nanoseconds(ns uint64) string { return Duration(time.Duration(min(ns, 1<<63-1))) }

// About is how a predicted time is shown, which is known to two digits at best: "40 s", "10 min", "5 h", "12 d".
func About(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return Duration(d.Round(time.Second))
	case d < 2*time.Hour:
		return Duration(d.Round(time.Minute))
	case d < 48*time.Hour:
		return Duration(d.Round(time.Hour))
	}
	return Duration(d.Round(24 * time.Hour))
}

// Share is how every share is shown, as percent with one decimal: "2.8 %". Only 0 is shown as 0 and only 1 as 100 %:
// below 0.1 % there are two decimals, and what is less than 0.01 % is "<0.01 %".
func Share(x float64) string {
	p := 100 * x
	switch {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return "-"
	case p < 0:
		return "-" + Share(-x)
	case p == 0:
		return "0 %"
	case p < 0.01:
		return "<0.01 %"
	case p < 0.095:
		return strconv.FormatFloat(p, 'f', 2, 64) + " %"
	case p == 100:
		return "100 %"
	case p > 99.9 && p < 100:
		return ">99.9 %"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}

// Part is the share that n has of all; "-" of nothing.
func Part[N int64 | uint64 | int | float64](n, all N) string {
	if all == 0 {
		return "-"
	}
	return Share(float64(n) / float64(all))
}

// Plural is a number with its noun: "1 file", "2 files", "3 entries".
func Plural(n uint64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "y") {
		return Count(n) + " " + one[:len(one)-1] + "ies"
	}
	return Count(n) + " " + one + "s"
}

// Count writes a number for a sentence: 1,234,567. Tables have no separators, so that programs can read them.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Spark draws values as one line of at most width characters, on a scale from the least value to the largest.
func Spark(v []float64, width int) string {
	if len(v) == 0 {
		return ""
	}
	return SparkFrom(slices.Min(v), v, width)
}

// SparkFrom is Spark on a scale that begins at lo. If there are more values than characters, it draws some: among them
// the first, the last and the largest one.
func SparkFrom(lo float64, v []float64, width int) string {
	n := min(width, len(v))
	if n == 0 {
		return ""
	}
	shown := make([]float64, n)
	for i := range shown {
		shown[i] = v[i*(len(v)-1)/max(n-1, 1)]
	}
	hi, at := lo, 0
	for i, x := range v {
		if x > hi {
			hi, at = x, i
		}
	}
	if k := at * (n - 1) / max(len(v)-1, 1); hi > lo && !slices.Contains(shown, hi) {
		shown[min(max(k, 1), max(n-2, 0))] = hi
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, x := range shown {
		k := 0
		if hi > lo {
			k = int((x - lo) / (hi - lo) * 7.99)
		}
		b.WriteRune(bars[k])
	}
	return b.String()
}

// Time is how every moment is shown: in local time, with the name of the zone. "2026-11-21 15:04:05 UTC".
func Time(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// Clock is Time without the date, where the date is beside it or does not matter: "15:04:05 UTC".
func Clock(t time.Time) string { return t.Local().Format("15:04:05 MST") }
