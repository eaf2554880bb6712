// Package agent is the recorder: one process that empties the shared rings of many JVMs into one ring folder each.
//
// Terms. A *session* is one load of the probe into one JVM, and the goroutine that records it. A *recording* is the ring folder it fills,
// `<name>-<pid>-<start>`. An agent *watches* folders in which probes create their rings; a ring that appears there becomes a session.
//
//	ring file appears -> open, acquire -> [read -> intern -> append -> commit]* -> ended or gone, and drained -> seal, unlink the ring
//	                                       |                   |
//	                        violation: quarantine            store refused: epochs dropped and counted, GAP, new sync point
//
// Invariants:
//
//  1. Every byte of a ring is hostile: blocks are decoded within the limits of package trace, tables are bounded, and what one JVM does
//     wrong ends its own session and no other.
//  2. A position is committed to the ring only after the store has taken what came before it. Otherwise a killed agent would lose it.
//  3. Every file of a recording can be read alone: it begins with META, the definitions and a SYNC; a definition that is used later
//     stands in the same file before its first use. At depth `samples` there is no listing and the SYNC is missing.
//  4. An error of the store never ends a session. Whole epochs are dropped, counted and told by a GAP block, and a sync point is asked for.
//  5. What the service manager keeps of a ring has an open file description of its own. Otherwise the lock of an agent
//     that was killed would stay.
//  6. Every goroutine has ended when Run or Close returns, but for those that a disk keeps which does not answer.
//
// What it does not do: it never reconstructs a heap (package heap), does not attach (agent/attach), finds no JVMs (agent/jvms).
package agent
