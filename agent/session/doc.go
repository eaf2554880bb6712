// Package session records one JVM: it empties the JVM's shared ring into a ring folder.
//
//	shared ring -> batch -> block: decode once -> interpret -> frame -> store -> commit the batch
//	                                  |
//	                                  definitions, losses, sync decision, live heap, status
//
// Terms. A *session* is one load of the probe into one JVM. A *batch* is what is read from the shared ring at once, a
// *block* a unit of package trace, a *frame* what the store takes or refuses as a whole. A *ring folder* holds the
// files of the recording.
//
// Invariants:
//
//  1. Every byte of a ring is hostile: blocks are decoded within the limits of package trace, tables are bounded, and
//     an error of one JVM ends only its own session.
//  2. A position is committed to the ring only after the store has taken or refused what lies before it. Otherwise a
//     killed agent would lose it.
//  3. Every file of a recording can be read alone: it begins with META, the definitions and a SYNC; a definition that
//     is used later is in the same file before its first use. At depth samples there is no listing and no SYNC.
//  4. An error of the store never ends a session. Whole epochs are dropped, counted and reported by a GAP block, and a
//     sync point is requested.
//  5. The state of the shared ring is read once a batch and handed down. Otherwise two steps of a batch would decide by
//     different states.
//
// What it does not do: it finds no rings and no JVMs (package agent), and shares nothing among JVMs (package quota).
package session
