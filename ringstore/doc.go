// Package ringstore keeps one JVM's recording in a folder of ring files whose size is bounded (ICPE'16 §3.2; docs/format/ring-file.md).
//
// Terms: M = max_trace_size, d = max_trace_size_deviation, n = ⌈1/d⌉ files of target size T = M/n.
//
// Invariants:
//
//  1. What occupies blocks never exceeds M(1+d), at no instant: each write is checked before it is made, and a frame that would not fit is
//     refused with ErrNoRoom; the caller drops and counts it.
//  2. A new file begins with a frame whose size is known before the oldest file goes (it provably fits), so the oldest file is never given
//     up for a sync point that cannot be kept.
//  3. Sync points take at most a quarter of a file: T grows to four times the last one.
//  4. Files are created, appended to and unlinked, never rewritten; at opening an unfinished frame at the end of the newest is cut off and told.
//  5. Nothing is deleted because it could not be read.
//
// It does not interpret the blocks inside frames.
package ringstore
