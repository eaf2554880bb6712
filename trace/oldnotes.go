package trace

import (
	"regexp"
	"strconv"
	"strings"
)

// Agents that wrote blocks of version 1 put their remarks into the text of notes. This is the one place that reads
// such a text: DecodeMeta gives it as the event that is there since version 2.

var (
	oldSites = regexp.MustCompile(`^sites: the table of frames was full: (\d+) samples so far are told by the ` +
		`callers that were known, (\d+) least used frames have made room$`)
	oldUnlisted = regexp.MustCompile(`(?s)^collection (\d+): one full collection follows the other, and their ` +
		`listings have taken what they may: this one is left out \((\d+) objects, (\d+) bytes\)\. (.*)$`)
)

const oldSampling = "cost: sampling "

// readOldNotes turns the notes of m that were remarks into these. What does not read as one stays a note.
func (m *Meta) readOldNotes() {
	var notes []Note
	for _, n := range m.Notes {
		if !m.oldRemark(n) {
			notes = append(notes, n)
		}
	}
	m.Notes = notes
}

func (m *Meta) oldRemark(n Note) bool {
	if rest, ok := strings.CutPrefix(n.Text, oldSampling); ok {
		number, _, _ := strings.Cut(rest, " ")
		v, ok := oldNumbers([]string{number}, MaxTime)
		if ok {
			m.Sampling = append(m.Sampling, Sampling{n.Time, v[0]})
		}
		return ok
	}
	if f := oldSites.FindStringSubmatch(n.Text); f != nil {
		v, ok := oldNumbers(f[1:], MaxCount)
		if ok {
			m.SitesCut = append(m.SitesCut, SitesCut{n.Time, v[0], v[1]})
		}
		return ok
	}
	if f := oldUnlisted.FindStringSubmatch(n.Text); f != nil {
		v, ok := oldNumbers(f[1:4], MaxCount)
		if ok {
			m.Unlisted = append(m.Unlisted, Unlisted{n.Time, v[0], v[1], v[2], f[4]})
		}
		return ok
	}
	if n.Text == exhaustedText {
		m.Exhausted = append(m.Exhausted, Exhausted{Time: n.Time})
		return true
	}
	return false
}

// oldNumbers reads decimal numbers up to limit.
func oldNumbers(texts []string, limit uint64) (v []uint64, ok bool) {
	for _, t := range texts {
		x, err := strconv.ParseUint(t, 10, 64)
		if err != nil || x > limit {
			return nil, false
		}
		v = append(v, x)
	}
	return v, true
}
