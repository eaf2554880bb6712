// Package segment is one file of a ring: its format, and what reads and writes it (docs/format/ring-file.md).
//
// Terms: a *frame* is a header and a payload of whole blocks; the *head* is the first frame (definitions, and mostly a
// sync point). A segment is *open* while frames are appended, and *sealed* by an index as its last frame.
//
//	file header | head | frame | frame | … | index     File reads, Writer appends, Stream writes one at a stretch
//
// Invariants:
//
//  1. A frame counts only if its header, its length and its checksum agree. The end of a file that does not is *torn*
//     (nothing sound follows), the middle is *corrupt*; both are a *DamageError with file and offset. A version that is
//     too new is neither (*TooNewError).
//  2. Nothing is allocated by a length that was read before it was checked against the file and MaxFrame.
//  3. The index says nothing that the frames do not say: without it, or where it disagrees, frames are gone through.
//
// It does not interpret the blocks inside frames, and knows no limit on what a ring occupies (package quota).
package segment
