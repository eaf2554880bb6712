package trace

import "fmt"

// Remarks are the events by which an agent says, in META blocks, what the stream of the probe does not: what recording
// cost, what was left out, and when the JVM was in distress. Times are ns since the probe's start. A String is for
// people; nothing reads it.

// Sampling says what sampling has cost since the probe began: NS over all threads.
type Sampling struct{ Time, NS uint64 }

// SitesCut says that the table of frames was full. Since the probe began, Samples samples were recorded by their known
// callers alone, and Folded least used frames were evicted. The newest event counts.
type SitesCut struct{ Time, Samples, Folded uint64 }

func (s SitesCut) String() string {
	return fmt.Sprintf("the site table was full: %d samples were recorded with their known callers only, "+
		"%d least-used frames were evicted", s.Samples, s.Folded)
}

// Unlisted replaces the listing of the collection GC, which was left out since one full collection
// follows the other. Largest names the largest classes and sites of it, for people.
type Unlisted struct {
	Time, GC, Objects, Bytes uint64
	Largest                  string
}

func (l Unlisted) String() string {
	return fmt.Sprintf("collection %d: not listed: full collections used up the limit for listings "+
		"(%d objects, %d bytes). %s", l.GC, l.Objects, l.Bytes, l.Largest)
}

// Storm says that a GC storm begins: in the Span before, ns, Collections full collections took NS.
type Storm struct{ Time, Span, Collections, NS uint64 }

func (Storm) String() string {
	return "a GC storm begins: full collections take more than half of the time"
}

// Exhausted says that an allocation failed; Failed have, since the probe began. One stands for a burst of them.
type Exhausted struct{ Time, Failed uint64 }

func (Exhausted) String() string { return exhaustedText }

const exhaustedText = "the heap is exhausted: an allocation failed"

// Process says what memory the JVM's process took, in bytes; 0: not known. What is resident (RSS) has Anon, which no
// file has, so heap, metaspace, code, stacks and native memory. Heap is what the JVM committed for it. Metaspace is
// what classes use of it. Code is all compiled code so far: the JVM does not count what it freed. Limit is that of the
// memory cgroup, Used what the whole cgroup used.
type Process struct {
	Time, RSS, Anon, Swap, Threads, Heap, Metaspace, Code, Classes, Limit, Used uint64
}

// Killed says that the kernel killed a process for want of memory, shortly before the JVM was found ended without an
// end marker. Scope says which counter of kills rose. Limit is that of the memory cgroup of the JVM's process, or of
// one above it, if it was reached; 0: it was not, or that is not known. The newest event counts.
type Killed struct{ Time, Scope, Limit uint64 }

func (k Killed) String() string {
	limit := fmt.Sprintf("%d MiB", k.Limit>>20)
	switch {
	case k.Scope == KilledCgroup && k.Limit > 0:
		return "the kernel killed it because its memory cgroup reached its limit of " + limit +
			" (most likely: the counter of kills of that cgroup rose)"
	case k.Scope == KilledCgroup:
		return "the kernel killed it for want of memory (most likely: the counter of kills of its memory cgroup rose)"
	case k.Scope == KilledAbove && k.Limit > 0:
		return "the kernel killed a process of the cgroup above it for want of memory at about that time " +
			"(its own memory cgroup is gone; a limit of " + limit + " was reached)"
	case k.Scope == KilledAbove:
		return "the kernel killed a process of the cgroup above it for want of memory at about that time " +
			"(its own memory cgroup is gone)"
	}
	return "the kernel killed a process for want of memory at about that time"
}

// remark takes in an event of a META that is not the JVM's description.
func (m *Meta) remark(r *row) {
	n := &r.num
	switch r.ev.Tag {
	case TagNote:
		m.Notes = append(m.Notes, Note{n[0], r.str(0)})
	case TagSampling:
		m.Sampling = append(m.Sampling, Sampling{n[0], n[1]})
	case TagSitesCut:
		m.SitesCut = append(m.SitesCut, SitesCut{n[0], n[1], n[2]})
	case TagUnlisted:
		m.Unlisted = append(m.Unlisted, Unlisted{n[0], n[1], n[2], n[3], r.str(0)})
	case TagStorm:
		m.Storms = append(m.Storms, Storm{n[0], n[1], n[2], n[3]})
	case TagExhausted:
		m.Exhausted = append(m.Exhausted, Exhausted{n[0], n[1]})
	case TagProcess:
		m.Process = append(m.Process, Process{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10]})
	case TagKilled:
		m.Killed = append(m.Killed, Killed{n[0], n[1], n[2]})
	case TagResource:
		m.Resource = m.Resource.with(r.str(0), CleanAttr(r.str(1))) // a probe's is as the process wrote it
	}
}

// appendRemarks is the inverse of remark, of all that m holds.
func (m *Meta) appendRemarks(b []byte) []byte {
	for _, n := range m.Notes {
		b = putRemark(b, TagNote, []uint64{n.Time}, n.Text)
	}
	for _, s := range m.Sampling {
		b = putRemark(b, TagSampling, []uint64{s.Time, s.NS})
	}
	for _, s := range m.SitesCut {
		b = putRemark(b, TagSitesCut, []uint64{s.Time, s.Samples, s.Folded})
	}
	for _, l := range m.Unlisted {
		b = putRemark(b, TagUnlisted, []uint64{l.Time, l.GC, l.Objects, l.Bytes}, l.Largest)
	}
	for _, s := range m.Storms {
		b = putRemark(b, TagStorm, []uint64{s.Time, s.Span, s.Collections, s.NS})
	}
	for _, x := range m.Exhausted {
		b = putRemark(b, TagExhausted, []uint64{x.Time, x.Failed})
	}
	for _, p := range m.Process {
		b = putRemark(b, TagProcess, []uint64{p.Time, p.RSS, p.Anon, p.Swap, p.Threads, p.Heap, p.Metaspace, p.Code,
			p.Classes, p.Limit, p.Used})
	}
	for _, k := range m.Killed {
		b = putRemark(b, TagKilled, []uint64{k.Time, k.Scope, k.Limit})
	}
	return m.Resource.appendTo(b)
}

// putRemark is put with numbers beyond their limits lowered to these. Agents copy them from counters of a ring, which a
// JVM may have forged: no reader would take the block otherwise, with whatever else is in it.
func putRemark(b []byte, tag Tag, nums []uint64, texts ...string) []byte {
	n := 0
	for i := range eventByTag[tag].Fields {
		if f := &eventByTag[tag].Fields[i]; f.Type == FieldU {
			nums[n] = min(nums[n], f.Max)
			n++
		}
	}
	return put(b, tag, nums, texts...)
}

// Texts gives what m says for people: its notes, and the remarks that have words, as notes.
func (m *Meta) Texts() []Note {
	out := append([]Note(nil), m.Notes...)
	for _, s := range m.SitesCut {
		out = append(out, Note{s.Time, "sites: " + s.String()})
	}
	for _, l := range m.Unlisted {
		out = append(out, Note{l.Time, l.String()})
	}
	for _, s := range m.Storms {
		out = append(out, Note{s.Time, s.String()})
	}
	for _, x := range m.Exhausted {
		out = append(out, Note{x.Time, x.String()})
	}
	return out
}

// First gives the earliest time that a note or remark of m names; ok: there is one.
func (m *Meta) First() (t uint64, ok bool) {
	m.times(func(at uint64) {
		if !ok || at < t {
			t, ok = at, true
		}
	})
	return t, ok
}

// Last gives the newest time that a note or remark of m names; 0: there is none.
func (m *Meta) Last() (t uint64) {
	m.times(func(at uint64) { t = max(t, at) })
	return t
}

// times calls see with each time that a note or remark names.
func (m *Meta) times(see func(at uint64)) {
	for _, n := range m.Texts() {
		see(n.Time)
	}
	for _, s := range m.Sampling {
		see(s.Time)
	}
	for _, p := range m.Process {
		see(p.Time)
	}
	for _, k := range m.Killed {
		see(k.Time)
	}
}
