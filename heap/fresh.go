package heap

import (
	"slices"
	"sort"
)

// fresh are the samples that were taken and not yet resolved. At interval 0 they are as many as objects are allocated, and few of them are ever
// looked for: so they stand in a list, which is nearly ascending, and not in a map.
type fresh struct {
	all  []*Sample
	sort bool // not ascending
}

// maxFresh bounds samples that wait for their collection, keepFresh those whose room is kept.
const (
	maxFresh  = 1 << 22
	keepFresh = 1 << 16
)

// add takes x in, unless there are too many. Of several with one id the last counts.
func (f *fresh) add(x *Sample) bool {
	n := len(f.all)
	if n >= maxFresh {
		return false
	}
	f.sort = f.sort || n > 0 && f.all[n-1].ID > x.ID
	f.all = append(f.all, x)
	return true
}

// find gives the sample of that id, nil if there is none.
func (f *fresh) find(id uint64) *Sample {
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

func (f *fresh) clear() {
	clear(f.all)
	if f.all = f.all[:0]; cap(f.all) > keepFresh {
		f.all = nil
	}
	f.sort = false
}
