package leak

import "github.com/heapcam/heapcam/heap"

// Verdicts are the verdicts of a report on what h has seen.
func (h *detector) Verdicts(r *heap.Cursor) []Verdict { return h.Report(r).Verdicts }
