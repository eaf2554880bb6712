package ui

import (
	"fmt"
	"strings"
)

// Bytes renders a size for people.
func Bytes(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
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
