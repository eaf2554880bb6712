package trace

// MaxCandidates bounds the candidates of one type: four sites, and that there are more.
const MaxCandidates = 5

// maxScans bounds what is remembered of rounds of reading.
const maxScans = 64

// AddScan adds what a `scanned` says. Each entry of all stands for the births after Blind, up to GC: rounds without a
// hole between them are one entry. Of too many the oldest is dropped.
func AddScan(all []Scanned, s Scanned) []Scanned {
	if n := len(all); n > 0 {
		last := all[n-1]
		if s.GC < last.GC {
			return all
		}
		if s.Blind <= last.GC {
			out := append(all[:n-1:n-1], Scanned{GC: s.GC, Blind: last.Blind})
			return out
		}
	}
	if len(all) >= maxScans {
		all = all[1:]
	}
	return append(all[:len(all):len(all)], s)
}

// ScansCover says whether the sites of all that was born in collections from to to are among the candidates.
func ScansCover(all []Scanned, from, to uint64) bool {
	for _, s := range all {
		if from > s.Blind && to <= s.GC {
			return true
		}
	}
	return false
}
