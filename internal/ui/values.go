package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a flag in bytes: 16GiB, 512k, 4M, 1048576.
type Size int64

// String gives a text that Set takes for the same size: exact bytes where Bytes would round.
func (s *Size) String() string {
	text := Bytes(int64(*s))
	if n, err := ParseSize(text); err != nil || n != int64(*s) {
		return strconv.FormatInt(int64(*s), 10)
	}
	return text
}

// Type is the flag's placeholder.
func (s *Size) Type() string { return "SIZE" }

// Set takes what ParseSize takes.
func (s *Size) Set(v string) error {
	n, err := ParseSize(v)
	if err == nil {
		*s = Size(n)
	}
	return err
}

// shifts are the suffixes of sizes: powers of 1024, with or without "iB" or "B".
var shifts = map[string]uint{"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20,
	"g": 30, "gb": 30, "gib": 30, "t": 40, "tb": 40, "tib": 40}

// ParseSize gives the bytes of a size, whose suffix may be in any case.
func ParseSize(v string) (int64, error) {
	t := strings.ToLower(strings.TrimSpace(v))
	i := strings.IndexFunc(t, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	unit := ""
	if i >= 0 {
		t, unit = t[:i], strings.TrimSpace(t[i:])
	}
	shift, ok := shifts[unit]
	if whole, err := strconv.ParseInt(t, 10, 64); ok && shift == 0 && err == nil {
		return whole, nil // exact beyond what a float64 holds
	}
	f, err := strconv.ParseFloat(t, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not a size (like 512k, 64MiB or 16GiB)", v)
	}
	f *= float64(uint64(1) << shift)
	if f < 0 || f >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is out of range", v)
	}
	return int64(f), nil
}

// Span is a flag that is a size or a duration, one of which is above 0 once it is set.
type Span struct {
	Bytes    int64
	Duration time.Duration
}

// Type is the flag's placeholder.
func (s *Span) Type() string { return "SIZE|DURATION" }

// String gives what is set, "" if nothing is.
func (s *Span) String() string {
	switch {
	case s.Duration > 0:
		return s.Duration.String()
	case s.Bytes > 0:
		return Bytes(s.Bytes)
	}
	return ""
}

// Set takes a duration when the unit says so: 15m is a quarter of an hour, 15MiB and 15M are sizes.
func (s *Span) Set(v string) error {
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		*s = Span{Duration: d}
		return nil
	}
	n, err := ParseSize(v)
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is neither a size (like 64MiB) nor a duration (like 15m)", v)
	}
	*s = Span{Bytes: n}
	return nil
}

// Instant is a flag that is a point in time; its zero value is not set.
type Instant struct{ time.Time }

// Type is the flag's placeholder.
func (i *Instant) Type() string { return "TIME" }

// String gives the time as Time does, "" if it is not set.
func (i *Instant) String() string {
	if i.IsZero() {
		return ""
	}
	return Time(i.Time)
}

// instants are the layouts of ParseTime that have a date, clocks those that have none.
var (
	instants = []string{time.RFC3339, "2006-01-02 15:04:05 MST", time.DateTime, "2006-01-02T15:04:05",
		"2006-01-02 15:04"}
	clocks = []string{time.TimeOnly, "15:04"}
)

// ParseTime reads RFC 3339, a date and time, or a time of day. Local time is meant unless the text ends with Z, UTC or
// an offset. A time of day is the last one that is not after end.
func ParseTime(v string, end time.Time) (time.Time, bool) {
	for _, layout := range instants {
		if t, err := time.ParseInLocation(layout, v, time.Local); err == nil && knownZone(t, v) {
			return t, true
		}
	}
	zone, clock := time.Local, v
	for _, utc := range []string{"Z", " UTC"} {
		if c, ok := strings.CutSuffix(v, utc); ok {
			zone, clock = time.UTC, c
		}
	}
	if zone == time.Local { // the zone's own abbreviation, as Clock prints it
		abbreviation, _ := end.Local().Zone()
		clock = strings.TrimSuffix(clock, " "+abbreviation)
	}
	for _, layout := range clocks {
		if t, err := time.Parse(layout, clock); err == nil {
			d := end.In(zone)
			t = time.Date(d.Year(), d.Month(), d.Day(), t.Hour(), t.Minute(), t.Second(), 0, zone)
			if t.After(end) {
				t = t.AddDate(0, 0, -1)
			}
			return t, true
		}
	}
	return time.Time{}, false
}

// knownZone says that v does not name a zone that this machine does not know: Go reads such a zone as UTC.
func knownZone(t time.Time, v string) bool {
	name, offset := t.Zone()
	return offset != 0 || name == "UTC" || t.Location() == time.Local || !strings.HasSuffix(v, " "+name)
}

// Set takes what ParseTime takes. A time of day is the last one before now.
func (i *Instant) Set(v string) error {
	t, ok := ParseTime(v, time.Now())
	if !ok {
		return fmt.Errorf("%q is not a time (like 15:04:05, 2026-11-21 15:04:05 or 2026-11-21T15:04:05Z)", v)
	}
	*i = Instant{t}
	return nil
}

// Percent is a flag that is a share, 0 to 1, written like 2%.
type Percent float64

// String gives all digits.
func (p *Percent) String() string { return strconv.FormatFloat(100*float64(*p), 'g', -1, 64) + "%" }

// Type is the flag's placeholder.
func (p *Percent) Type() string { return "PERCENT" }

// Set demands the sign, but of 0.
func (p *Percent) Set(v string) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), "%"), 64)
	if err != nil || !(n >= 0 && n <= 100) || !strings.HasSuffix(v, "%") && n != 0 {
		return fmt.Errorf("%q is not a share (like 2%%)", v)
	}
	*p = Percent(n / 100)
	return nil
}
