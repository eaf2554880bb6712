package samples

import (
	"slices"
	"sort"
)

// pending are the samples that were taken and not yet resolved. At interval 0 they are as many as objects are
// allocated, and few of them are ever looked for: so they are in a list, which is nearly ascending, and not in a map.
type pending struct {
	all  []*Sample
	sort bool // not ascending
}

// maxPending bounds the pending samples, maxUnresolved those of earlier phases, keepPending those whose memory is kept
// for the next phase.
const (
	maxPending    = 1 << 22
	maxUnresolved = 1 << 16
	keepPending   = 1 << 16
)

// add takes x in, unless there are too many. Of several with one id the last counts.
func (f *pending) add(x *Sample) bool {
	n := len(f.all)
	if n >= maxPending {
		return false
	}
	f.sort = f.sort || n > 0 && f.all[n-1].ID > x.ID
	f.all = append(f.all, x)
	return true
}

// find gives the sample of that id, nil if there is none.
func (f *pending) find(id uint64) *Sample {
	if f.sort {
		f.sort = false
		slices.SortStableFunc(f.all, func(a, b *Sample) int {
			if a.ID < b.ID {
				return -1
			}
			return int(min(1, a.ID-b.ID))
		})
	}
	if i := sort.Search(len(f.all), func(i int) bool { return f.all[i].ID > id }); i > 0 && f.all[i-1].ID == id {
		return f.all[i-1]
	}
	return nil
}

// keep drops all but the newest samples.
func (f *pending) keep() {
	if n := len(f.all) - maxUnresolved; n > 0 {
		f.all = slices.Delete(f.all, 0, n)
	}
}

func (f *pending) clear() {
	clear(f.all)
	if f.all = f.all[:0]; cap(f.all) > keepPending {
		f.all = nil
	}
	f.sort = false
}
