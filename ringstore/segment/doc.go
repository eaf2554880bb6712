// Package segment is one file of a ring: its format, and what reads and writes it (docs/format/ring-file.md).
//
// Terms: a *frame* is a header and a payload of whole blocks; the *head* is the first frame (definitions, and mostly a
// sync point). A segment is *open* while frames are appended, and *sealed* by an index as its last frame.
//
//	file header | head | frame | frame | … | index     File reads, Writer appends, Stream writes a whole file at once
//
// Invariants:
//
//  1. A frame counts only if its header, its length and its checksum agree. A bad frame is *torn* if no
//     sound frame follows, else *corrupt*; both are a *DamageError with file and offset. A version that is
//     too new is neither (*TooNewError).
//  2. Nothing is allocated by a length that was read before it was checked against the file and MaxFrame.
//  3. The index repeats what the frames say. Without it, or where it disagrees, all frames are read.
//
// It does not interpret the blocks inside frames, and knows no limit on what a ring occupies (package quota).
package segment
