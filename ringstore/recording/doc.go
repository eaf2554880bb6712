// Package recording opens what was recorded, whatever it lies in: a ring folder, an incident, a container (tar) or a
// single segment; and gives the verdict of each file.
//
// Invariants:
//
//  1. Nothing is changed, and nothing is hidden: what cannot be read, is of another recording or has another's number
//     is a problem that is named, and the rest is read.
//  2. Inside a recording the number in a file's header is its place, whatever its name.
//  3. A recording is read up to its last whole frame, so it may be opened while a recorder writes to it.
//
// It does not interpret blocks, but for asking whether they can be framed.
package recording
