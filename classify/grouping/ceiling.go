package grouping

import ()

// ceiling is what there is of a class, which the bounds of its sites cannot exceed. class identifies a ceiling; 0: it
// is not known.
type ceiling struct {
	class          int32
	objects, bytes uint64
	// of these, what has no known site, if samples were lost: any site may have it
	lost, lostBytes uint64
}

// ceilings gives for each stratum what there is of its class, as `histogram --sites` counts it: types of one name and
// loader are one class.
func (b *builder) ceilings(of []stratumKey, strata []stratum) []ceiling {
	type key struct {
		name   string
		loader uint64
		first  bool
	}
	number := map[key]int32{}
	in, sums := make([]int32, len(strata)), []ceiling{}
	for i, x := range of {
		k := key{b.w.TypeName(x.typ), b.w.Types[uint64(x.typ)].Loader, x.first}
		n, ok := number[k]
		if !ok {
			n = int32(len(sums))
			number[k] = n
			sums = append(sums, ceiling{class: n + 1})
		}
		in[i] = n
		sums[n].objects += uint64(strata[i].o)
		sums[n].bytes += uint64(strata[i].bytes)
		if b.w.LostSamples {
			lost, lostBytes := strata[i].unknown()
			sums[n].lost += rounded(lost)
			sums[n].lostBytes += rounded(lostBytes)
		}
	}
	out := make([]ceiling, len(strata))
	for i, n := range in {
		out[i] = sums[n]
	}
	return out
}

// ceilingSum adds up those of different classes. The zero value is empty.
type ceilingSum struct {
	ceiling // their sum; class is that of the newest
	seen    map[int32]bool
	unknown bool
}

func (c *ceilingSum) add(x ceiling) {
	if x.class == c.class && x.class != 0 {
		return
	}
	if c.unknown = c.unknown || x.class == 0; c.unknown || c.seen[x.class] {
		return
	}
	if c.class != 0 || c.seen != nil {
		if c.seen == nil {
			c.seen = map[int32]bool{c.class: true}
		}
		c.seen[x.class] = true
	}
	c.ceiling = ceiling{x.class, c.objects + x.objects, c.bytes + x.bytes, c.lost + x.lost, c.lostBytes + x.lostBytes}
}

// get gives what there is of all of them.
func (c *ceilingSum) get() (objects, bytes uint64) {
	if c.unknown {
		return 1 << 62, 1 << 62
	}
	return c.objects, c.bytes
}
