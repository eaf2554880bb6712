package leak

import (
	"io"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// limit is how many sampling intervals a leak must leave in a window to be named in 95 of 100 recordings; see
// TestDetectionLimit.
const limit = 24

// stateUnknown begins the reason that data is missing.
const stateUnknown = "the heap state is unknown"

// Doubt says why the window cannot show whether there is a leak, as the end of a sentence; "" if it can.
func (h *detector) Doubt() ui.Flow {
	n := len(h.Times)
	switch {
	case n == 0:
		return ""
	case 2*h.unknown > n:
		return ui.Flowf(stateUnknown+" after %d of %s", h.unknown, ui.Flow(ui.Plural(uint64(n), "collection")))
	case h.shows():
		return ""
	}
	are := ui.Flow("are")
	if n == 1 {
		are = "is"
	}
	return ui.Flowf("%s in %s %s too few to tell growth from chance", ui.Flow(ui.Plural(uint64(n), "collection")),
		ui.Flow(ui.Seconds(h.Times[n-1]-h.From)), are)
}

// note says what limits the verdicts; "" if nothing does.
func (h *detector) note() ui.Flow {
	switch {
	case len(h.Times) == 0:
		return "There is no collection in this recording."
	case h.Doubt() != "":
		return h.Doubt() + "."
	case len(h.Floors) == 0 && h.Missed > 0:
		return "Old space was not collected, unless in a pause without events: it is not known which objects " +
			"died there."
	case len(h.Floors) == 0:
		return "Old space was not collected in this recording: it is not known which objects died there."
	}
	return ""
}

// Smallest says which leaks would not have been found in 95 of 100 recordings of such a window, as a sentence.
func (h *detector) Smallest() ui.Flow {
	if h.watched { // which sites are watched how much changes all the time
		return ""
	}
	window := 0.0
	if n := len(h.Times); n > 0 {
		window = h.Times[n-1] - h.From
	}
	return smallest(h.interval, window)
}

func smallest(interval uint64, window float64) ui.Flow {
	switch {
	case interval == 0:
		return ui.Flowf("A leak of fewer than %d objects may go unnoticed.", limit)
	case window <= 0:
		return ui.Flowf("A leak of less than %s may go unnoticed.", ui.Flow(ui.Bytes(limit*interval)))
	}
	return ui.Flowf("A leak slower than %s/s may go unnoticed: record for longer to see it.",
		ui.Flow(ui.Bytes(uint64(float64(limit*interval)/window))))
}

// Name is what is allocated: the class, and that there are others.
func (v *Verdict) Name() ui.Flow {
	if v.Others {
		return sites.ClassName(v.Class, v.Loader) + " and other objects"
	}
	return sites.ClassName(v.Class, v.Loader)
}

// what names class and site. wide says that the verdict is of all that a method allocates, and names most of it.
func (v *Verdict) what(wide bool) ui.Flow {
	at := sites.Place(v.Site)
	for _, f := range v.Site[min(1, len(v.Site)):] { // the line that a reader can change
		if libraryFrame(v.Site[0]) && !libraryFrame(f) {
			at += ui.Flowf(" (called from %s)", f)
			break
		}
	}
	name := v.Name()
	if wide {
		return ui.Flowf("%s allocated in the method %s", name, at)
	}
	return ui.Flowf("%s allocated %s", name, at)
}

// sentence says it in words.
func (v *Verdict) sentence() ui.Flow {
	s := ui.Flowf("%s grows by %s (estimated from %s). %s", v.What, v.Rate(),
		ui.Flow(ui.Plural(uint64(v.LiveSamples), "live sample")), v.Proof())
	if v.FullIn == nil {
		return s
	}
	return s + " " + v.Exhaustion("This leak alone fills the heap in ", "")
}

// Proof says what shows that the objects stay.
func (v *Verdict) Proof() ui.Flow {
	switch v.Floors {
	case 0:
		return "Old space was not collected in this recording, so part of the growth may be garbage."
	case 1:
		return "The objects were still there after the only collection of old space in this recording."
	}
	return ui.Flowf("The objects were still there after %d collections of old space.", v.Floors)
}

// longest is the time to exhaustion, in seconds, beyond which no time is said.
const longest = 365 * 86400

// Exhaustion says when the heap is full: begin, the time, end.
func (v *Verdict) Exhaustion(begin, end ui.Flow) ui.Flow {
	switch {
	case v.FullIn == nil:
		return "It is not known when the heap is full."
	case *v.FullIn >= longest:
		return "At this rate the heap is not full within a year."
	}
	return begin + "about " + ui.Flow(ui.About(seconds(*v.FullIn))) + end + "."
}

// Rate is the growth as text.
func (v *Verdict) Rate() ui.Flow { return rate(v.BytesPerSecond) }

func rate(bytes float64) ui.Flow { return ui.Flow(ui.Bytes(uint64(max(bytes, 0))) + "/s") }

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }

// WriteText prints verdicts for people. name is how the recording was named; "" if it has no name.
func (l *Report) WriteText(w io.Writer, name string) {
	note := l.note
	of := ui.Flowf("in %s and %s", ui.Flow(ui.Seconds(l.Window)),
		ui.Flow(ui.Plural(uint64(l.Collections), "collection")))
	switch n := uint64(len(l.Verdicts)); {
	case n > 0:
		ui.Headline(w, ui.Bad, ui.Flowf("%s found %s", ui.Flow(ui.Plural(n, "leaking allocation site")), of))
	case l.doubt != "":
		note = ""
		ui.Headline(w, ui.Doubt, ui.Flowf("Cannot tell whether the program leaks: %s. %s", l.doubt, Advice(l.doubt)))
	default:
		ui.Headline(w, ui.Good, ui.Flowf("No leak found %s. %s", of, smallest(l.interval, l.Window)))
	}
	for i, v := range l.Verdicts {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, ui.Flowf("%2d.", i+1), 4, v.Sentence)
		ui.Paragraph(w, "    Growth", 16, ui.Flowf("%s to %s (95 %% interval); %s since the start, %s of the "+
			"heap's growth",
			rate(v.BytesPerSecondLow), rate(v.BytesPerSecondHigh), ui.Flow(ui.Bytes(v.GrownBytes)),
			ui.Flow(ui.Share(v.Share))))
		sure := ui.Flow(ui.Share(v.Confidence))
		if v.Floors == 0 && v.Confidence >= maxUnproven {
			sure += "; not higher, because old space was not collected"
		}
		ui.Paragraph(w, "    Confidence", 16, sure)
		ui.Fprintf(w, "    Allocated\n")
		sites.WriteStack(w, v.Site, 6)
	}
	if note != "" && len(l.Verdicts) == 0 {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "Note:", 6, note)
	}
	collection.WriteMissed(w, "Note:", 6, l.Missed)
	if l.lostMany {
		ui.Paragraph(w, "Note:", 6, ui.Flowf("%s were lost: leaks may be larger than these figures, and others "+
			"may not "+
			"be found.", ui.Flow(ui.Plural(l.LostSamples, "sample"))))
	}
	if name == "" {
		return
	}
	file := ui.ShellWord(name)
	next := []ui.Text{ui.Sprintf("heapcam view %s", file), ui.Sprintf("heapcam history %s", file)}
	if len(l.Verdicts) > 0 && !l.watched { // there is no heap state to compare
		next = append(next, ui.Sprintf("heapcam diff --from first --to last %s", file))
	}
	ui.Next(w, next...)
}
