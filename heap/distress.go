package heap

import "github.com/heapcam/heapcam/trace"

// maxDistress is how many failed allocations and storms a Cursor keeps.
const maxDistress = 1000

// maxProcess is how often a Cursor keeps what memory the process had.
const maxProcess = 2000

// distress keeps what a META block says of an exhausted heap.
func (f *Findings) distress(b trace.Block) {
	m, err := trace.DecodeMeta(b)
	if err != nil { // Symbols.Meta has reported it
		return
	}
	f.Exhausted = append(f.Exhausted, m.Exhausted[:min(len(m.Exhausted), maxDistress-len(f.Exhausted))]...)
	f.Storms = append(f.Storms, m.Storms[:min(len(m.Storms), maxDistress-len(f.Storms))]...)
	if n := len(m.Killed); n > 0 {
		f.Killed = &m.Killed[n-1]
	}
	f.Noted = max(f.Noted, m.Last())
	if f.Process = append(f.Process, m.Process...); len(f.Process) > maxProcess {
		n := 0
		for i, p := range f.Process {
			if i%2 == 0 || i == len(f.Process)-1 {
				f.Process[n] = p
				n++
			}
		}
		f.Process = f.Process[:n]
	}
}
