package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// size is a flag of bytes: 16GiB, 512k, 4M, 1048576. Suffixes are powers of 1024, with or without "iB" or "B", in any case.
type size int64

func (s *size) String() string { return humanBytes(int64(*s)) }
func (s *size) Type() string   { return "SIZE" }
func (s *size) Set(v string) error {
	n, err := parseSize(v)
	if err == nil {
		*s = size(n)
	}
	return err
}

func parseSize(v string) (int64, error) {
	t := strings.ToLower(strings.TrimSpace(v))
	i := strings.IndexFunc(t, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	unit := ""
	if i >= 0 {
		t, unit = t[:i], strings.TrimSpace(t[i:])
	}
	shift, ok := map[string]uint{"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30, "gb": 30, "gib": 30,
		"t": 40, "tb": 40, "tib": 40}[unit]
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

// last is a flag that is a size or a duration.
type last struct {
	set   bool
	bytes int64
	dur   time.Duration
}

func (l *last) Type() string { return "SIZE|DURATION" }
func (l *last) String() string {
	switch {
	case !l.set:
		return ""
	case l.dur > 0:
		return l.dur.String()
	}
	return humanBytes(l.bytes)
}

// Set takes a duration when the unit says so: 15m is a quarter of an hour, 15MiB and 15M are sizes.
func (l *last) Set(v string) error {
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		*l = last{set: true, dur: d}
		return nil
	}
	n, err := parseSize(v)
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is neither a size (like 64MiB) nor a duration (like 15m)", v)
	}
	*l = last{set: true, bytes: n}
	return nil
}

// instant is a flag that is a point in time.
type instant struct {
	set bool
	t   time.Time
}

func (i *instant) Type() string { return "TIME" }
func (i *instant) String() string {
	if !i.set {
		return ""
	}
	return i.t.Format(time.RFC3339)
}

// Set takes RFC 3339, a local date and time, or a local time of the last 24 hours.
func (i *instant) Set(v string) error {
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", time.TimeOnly, "15:04"} {
		t, err := time.ParseInLocation(layout, v, time.Local)
		if err != nil {
			continue
		}
		if t.Year() == 0 {
			now := time.Now()
			t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.Local)
			if t.After(now) {
				t = t.AddDate(0, 0, -1)
			}
		}
		*i = instant{true, t}
		return nil
	}
	return fmt.Errorf("%q is not a time (like 2026-11-21T15:04:05Z or 15:04:05)", v)
}

func humanBytes(n int64) string {
	switch {
	case n >= 1<<30:
		return trim(float64(n)/(1<<30)) + " GiB"
	case n >= 1<<20:
		return trim(float64(n)/(1<<20)) + " MiB"
	case n >= 1<<10:
		return trim(float64(n)/(1<<10)) + " KiB"
	}
	return strconv.FormatInt(n, 10) + " B"
}

func trim(f float64) string {
	s := strconv.FormatFloat(f, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

func plural(n uint64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "y") {
		return fmt.Sprintf("%d %sies", n, one[:len(one)-1])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// percent is a share, 0 to 1, written like 2%.
type percent float64

func (p *percent) String() string { return strconv.FormatFloat(100*float64(*p), 'g', -1, 64) + "%" }
func (p *percent) Type() string   { return "PERCENT" }
func (p *percent) Set(v string) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), "%"), 64)
	if err != nil || !(n >= 0 && n <= 100) || !strings.HasSuffix(v, "%") && n != 0 {
		return fmt.Errorf("%q is not a share (like 2%%)", v)
	}
	*p = percent(n / 100)
	return nil
}

// budget is a share that may be left to a default that depends on other settings.
type budget struct {
	percent
	given bool
}

func (b *budget) Set(v string) error {
	err := b.percent.Set(v)
	b.given = b.given || err == nil
	return err
}

var badDuration = regexp.MustCompile(`time: (?:missing unit in|invalid|unknown unit "[^"]*" in) duration ("[^"]*")`)

// plainly is what err says, of durations in words for who does not know Go.
func plainly(err error) string {
	return badDuration.ReplaceAllString(err.Error(), "$1 is not a duration (like 250ms, 90s or 1h30m)")
}
