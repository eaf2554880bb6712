package coverage

import "math"

// Sites of objects without a sample are inferred from those of the same kind that have one: whether an object is
// sampled depends on its size and on chance, not on what happens to it afterwards. Of n live samples of a kind, k of
// which are of one site, the next object is of that site with probability (k − Discount) / (n + Strength), and of a
// site that no sample has shown with (Strength + Discount·m) / (n + Strength) for m sites: the predictive distribution
// of a Pitman–Yor process (Pitman and Yor, Annals of Probability 25, 1997; Teh, ACL 2006). Sites are as words: few are
// frequent and many are rare, so that there always is mass left for one not seen.
const (
	Discount = 0.5
	Strength = 0.5

	// within is the standard error of a share, relative to it, below which it counts as resolved.
	within = 0.1
)

// Known is the probability that the next object is of a site that k of n samples have.
func Known(n, k float64) float64 { return max(0, k-Discount) / (n + Strength) }

// Unseen is the probability that it is of a site that none of n samples has, which are of m sites.
func Unseen(n, m float64) float64 { return (Strength + Discount*m) / (n + Strength) }

// Resolution says what samples at a mean interval of so many bytes can show, in bytes of live objects of a site: what
// has at least one sample with a probability of 95 %, and what is known to ±20 % with that probability. 0 if each
// allocation is sampled.
func Resolution(interval uint64) (seen, known uint64) {
	return uint64(
		math.Ceil(-math.Log(0.05) * float64(interval)),
	), uint64(math.Ceil(math.Pow(1.959964/0.2, 2) * float64(interval)))
}

// Sites counts live samples by type and site. The zero value is empty.
type Sites struct {
	by map[uint32]*shares
}

// shares are the sites of one type.
type shares struct {
	n     uint64
	sites map[uint64]uint64
	top   uint64 // of the most frequent site; stale: to be found again
	stale bool
}

// Add counts a sample of a site.
func (s *Sites) Add(typ uint32, site uint64) {
	if s.by == nil {
		s.by = map[uint32]*shares{}
	}
	x := s.by[typ]
	if x == nil {
		x = &shares{sites: map[uint64]uint64{}}
		s.by[typ] = x
	}
	x.n++
	x.sites[site]++
	x.top = max(x.top, x.sites[site])
}

// Sub takes out a sample that Add has counted.
func (s *Sites) Sub(typ uint32, site uint64) {
	x := s.by[typ]
	if x == nil || x.sites[site] == 0 {
		return
	}
	x.n--
	x.stale = x.stale || x.sites[site] == x.top
	if x.sites[site]--; x.sites[site] == 0 {
		delete(x.sites, site)
	}
	if x.n == 0 {
		delete(s.by, typ)
	}
}

func (s *Sites) clear() { clear(s.by) }

// likeliest gives the probability that an object of a type is of the site that most of its samples have, 0 without any,
// and says whether the share of that site is resolved.
func (s *Sites) likeliest(typ uint32) (p float64, resolved bool) {
	x := s.by[typ]
	if x == nil {
		return 0, false
	}
	if x.stale {
		x.top, x.stale = 0, false
		for _, k := range x.sites {
			x.top = max(x.top, k)
		}
	}
	n := float64(x.n)
	p = Known(n, float64(x.top))
	return p, p > 0 && (1-p)/(p*n) <= within*within
}
