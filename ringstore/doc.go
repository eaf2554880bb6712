// Package ringstore keeps one JVM's recording in a folder of ring files whose size is bounded (ICPE'16 §3.2;
// docs/format/ring-file.md, docs/design/0005-ring-of-files.md).
//
// Terms: M = max_trace_size, d = max_trace_size_deviation, n = ⌈1/d⌉ files of target size T = M/n. A file of the ring
// is a *segment*: open while frames are appended to it, then sealed, and evicted when its space is needed.
//
// The six rules:
//
//  1. What occupies blocks never exceeds M(1+d), at no instant: each write is checked before it is made, and a frame
//     that would not fit is refused with ErrNoRoom; the caller drops and counts it. Preallocation counts, and so does
//     what a pull holds.
//  2. A new segment begins with a frame whose size is known before the oldest segment is evicted (it provably fits), so
//     the oldest is never evicted for a sync point that cannot be kept.
//  3. Sync points take at most a quarter of a segment: T grows to four times the last one, up to M/2; beyond that none
//     is taken.
//  4. Files are created, appended to, cut at their end, linked and unlinked, never rewritten. After an error nothing of
//     the frame is in the file; what could not be cut off at once is cut off later.
//  5. Nothing is deleted because it could not be read. Files of another session are neither read, counted, changed nor
//     deleted (package folder has the rule that says whose recording a folder holds).
//  6. The disk may fail and get full at every step: the store stays as it was, counts it, and works again when the disk
//     does.
//
// The parts, each of which imports only the ones before it:
//
//	vfs        the file system, which tests can make fail
//	segment    one file: format, index, reader, writer, compression
//	folder     whose recording a folder holds; documents; links of pulls
//	quota      how large ring and segments may be
//	recording  a folder or container, opened for reading; whether each file is sound
//	incident   windows that are kept
//	pull       containers: a recording copied into one file (tar)
//	ringstore  Store, the writing side of a ring; and aliases for the types above
//
// It does not interpret the blocks inside frames.
package ringstore
