package web

import (
	"fmt"
	"time"

	"github.com/heapcam/heapcam/internal/ui"
)

// The formats below are those of assets/lib.js: 1,234 objects; 5.9 s.

// objects writes a change of a number of objects.
func objects(n int64) string {
	if n < 0 {
		return "−" + ui.Plural(uint64(-n), "object")
	}
	return ui.Plural(uint64(n), "object")
}

// duration writes a duration in one unit.
func duration(d time.Duration) string {
	for _, u := range []struct {
		below, unit time.Duration
		name        string
	}{
		{time.Millisecond, time.Microsecond, "µs"}, {time.Second, time.Millisecond, "ms"},
		{2 * time.Minute, time.Second, "s"}, {2 * time.Hour, time.Minute, "min"}, {48 * time.Hour, time.Hour, "h"},
	} {
		if d < u.below {
			return fmt.Sprintf("%.1f %s", float64(d)/float64(u.unit), u.name)
		}
	}
	return fmt.Sprintf("%.1f d", d.Hours()/24)
}
