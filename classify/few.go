package classify

import "math/bits"

// Split takes out of the tuples without a sample what one of few bytecodes has made (World.FromFew), as tuples of their
// own. What a type has is spread evenly over its tuples.
func (w *World) Split(ts []Tuple) []Tuple {
	if w.FromFew == nil {
		return ts
	}
	type fresh struct{ objects, bytes, seen, seenBytes, taken uint64 }
	all := map[uint32]*fresh{}
	of := func(t *Tuple) *fresh {
		if t.Sampled || w.Before(t) {
			return nil
		}
		if all[t.Type] == nil {
			all[t.Type] = &fresh{}
		}
		return all[t.Type]
	}
	for i := range ts {
		if f := of(&ts[i]); f != nil {
			f.objects += ts[i].Objects
			f.bytes += ts[i].Bytes
		}
	}
	lists := map[uint32]int32{} // by type
	for i := range ts {
		t := &ts[i]
		f := of(t)
		if f == nil {
			continue
		}
		objects, bytes, places := w.FromFew(t.Type)
		if len(places) == 0 {
			continue
		}
		o := upTo(objects, f.seen+t.Objects, f.objects) - upTo(objects, f.seen, f.objects)
		b := min(t.Bytes, upTo(bytes, f.seenBytes+t.Bytes, f.bytes)-f.taken)
		f.seen, f.seenBytes = f.seen+t.Objects, f.seenBytes+t.Bytes
		if o == 0 {
			continue
		}
		f.taken += b
		if lists[t.Type] == 0 {
			w.Lists = append(w.Lists, listOf(places))
			lists[t.Type] = int32(len(w.Lists))
		}
		x := *t
		x.List, x.Objects, x.Bytes = lists[t.Type], o, b
		t.Objects, t.Bytes = t.Objects-o, t.Bytes-b
		ts = append(ts, x)
		if t = &ts[i]; t.Objects == 0 {
			*t, ts = x, ts[:len(ts)-1]
		}
	}
	return ts
}

// upTo is some, at most all, times seen/all.
func upTo(some, seen, all uint64) uint64 {
	if all == 0 {
		return 0
	}
	h, l := bits.Mul64(min(some, all), seen)
	n, _ := bits.Div64(h, l, all)
	return n
}

func listOf(places []string) List {
	if len(places) == 1 {
		return List{[]string{places[0], CallersUnknown}}
	}
	return List{[]string{SiteFew}}
}

// confidence says how the site of a tuple is known.
func (w *World) confidence(t *Tuple) string {
	switch {
	case t.List > 0 && len(w.Lists[t.List-1].Keys) > 1:
		return "proven"
	case t.List > 0:
		return SiteFew
	case !t.Sampled:
		return w.NoSite(t)
	case t.WObjects.Sum <= float64(t.Objects):
		return "exact"
	}
	return "sampled"
}
