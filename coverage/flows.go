package coverage

import "github.com/heapcam/heapcam/trace"

// Site is an allocation site of a type: a node of the trie of stacks.
type Site struct {
	Type  uint32
	Frame uint64
}

// Estimate is how many objects and bytes samples stand for.
type Estimate struct{ Objects, Bytes float64 }

// Plus gives the sum of two estimates.
func (e Estimate) Plus(x Estimate) Estimate {
	return Estimate{e.Objects + x.Objects, e.Bytes + x.Bytes}
}

// maxFlowSites bounds the sites of a flow; others count for the site Others.
const maxFlowSites = 1 << 16

// Others is the site of what exceeds maxFlowSites. No type has this id.
var Others = Site{Type: 1<<32 - 1}

// Flow is what samples of each site stand for, in some time.
type Flow map[Site]Estimate

func (f Flow) add(s sample) {
	k := Site{s.typ, s.frame}
	e, ok := f[k]
	if !ok && len(f) >= maxFlowSites {
		k = Others
		e = f[k]
	}
	w := trace.Weight(s.size, uint64(s.interval))
	e.Objects += w
	e.Bytes += w * float64(s.size)
	f[k] = e
}

// AddAll adds all of g. What exceeds the bound of a Flow counts as Others.
func (f Flow) AddAll(g Flow) {
	for k, e := range g {
		if _, ok := f[k]; !ok && len(f) >= maxFlowSites {
			k = Others
		}
		f[k] = f[k].Plus(e)
	}
}

// Flows are what happened since they were taken last: what was allocated, what of it survived a collection for the
// first time, and what had survived one and died.
type Flows struct{ Allocated, Survived, Freed Flow }

// TakeFlows gives the flows since it was called last, and begins anew. The first call begins: it gives none.
func (l *Live) TakeFlows() (f Flows) {
	if l.flows != nil {
		f = *l.flows
	}
	l.flows = &Flows{Flow{}, Flow{}, Flow{}}
	return f
}

// leastObject is the size of the smallest Java object in bytes.
const leastObject = 16

// EachSite gives what lives by type and site, after the newest collection; false if the state is not known. known says
// that it is the site of samples; else it is what remains of the type. Figures are those of `heapcam group --by
// 'type, site'` (package classify): each sample counts as itself, and stands for others as far as the type has any.
func (l *Live) EachSite(f func(s Site, known bool, e Estimate)) bool {
	if !l.known {
		return false
	}
	type sum struct{ own, all Estimate }
	add := func(x *sum, s *sample) {
		w, size := trace.Weight(s.size, uint64(s.interval)), float64(s.size)
		x.own.Objects++
		x.own.Bytes += size
		x.all.Objects += w
		x.all.Bytes += w * size
	}
	sites, types := map[Site]*sum{}, map[uint32]*sum{}
	for _, s := range l.live {
		k := Site{s.typ, s.frame}
		if sites[k] == nil {
			sites[k] = &sum{}
		}
		if types[s.typ] == nil {
			types[s.typ] = &sum{}
		}
		add(sites[k], &s)
		add(types[s.typ], &s)
	}
	fits := map[uint32]Estimate{}
	l.Totals(func(typ uint32, n Count) {
		rest := Estimate{float64(n.Objects), float64(n.Bytes)}
		if x := types[typ]; x != nil {
			others, free := x.all.minus(x.own), rest.minus(x.own)
			fit := Estimate{Objects: share(others.Objects, free.Objects)}
			reserved := leastObject * max(0, free.Objects-fit.Objects*others.Objects)
			fit.Bytes = share(others.Bytes, free.Bytes-min(free.Bytes, reserved))
			fit.Objects = min(fit.Objects, fit.Bytes) // as in analysis/sites.Fit
			rest = Estimate{free.Objects - fit.Objects*others.Objects, free.Bytes - fit.Bytes*others.Bytes}
			fits[typ] = fit
		}
		if rest.Objects > 0 || rest.Bytes > 0 {
			f(Site{Type: typ}, false, Estimate{max(0, rest.Objects), max(0, rest.Bytes)})
		}
	})
	for k, x := range sites {
		if fit, ok := fits[k.Type]; ok { // else its type is not known yet
			others := x.all.minus(x.own)
			f(k, true, Estimate{x.own.Objects + fit.Objects*others.Objects,
				x.own.Bytes + fit.Bytes*others.Bytes})
		}
	}
	return true
}

func (e Estimate) minus(o Estimate) Estimate {
	return Estimate{e.Objects - o.Objects, e.Bytes - o.Bytes}
}

// share is the part of others that there is room for.
func share(others, room float64) float64 {
	if others <= 0 {
		return 0
	}
	return min(1, max(0, room)/others)
}
