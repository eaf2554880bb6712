package ui

import (
	"fmt"
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

// Duration is how every duration is shown: three digits or so, and no more than a reader can use.
func Duration(d time.Duration) string {
	switch a := d.Abs(); {
	case a >= time.Minute:
		d = d.Round(time.Second)
	case a >= time.Second:
		d = d.Round(100 * time.Millisecond)
	case a >= 10*time.Millisecond:
		d = d.Round(time.Millisecond)
	case a >= time.Millisecond:
		d = d.Round(100 * time.Microsecond)
	}
	return d.String()
}

// Plural is a number with its noun: "1 file", "2 files", "3 entries".
func Plural(n uint64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "y") {
		return fmt.Sprintf("%d %sies", n, one[:len(one)-1])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Spark draws values as one line of at most width characters.
func Spark(v []float64, width int) string {
	if len(v) == 0 {
		return ""
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	lo, hi := v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	var b strings.Builder
	n := min(width, len(v))
	for i := range n {
		x := v[i*len(v)/n]
		k := 0
		if hi > lo {
			k = int((x - lo) / (hi - lo) * 7.99)
		}
		b.WriteRune(bars[k])
	}
	return b.String()
}
