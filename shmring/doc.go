// Package shmring is the agent's side of the shared ring: one file a recorded JVM, mapped and written by the probe,
// read here. The contract is docs/format/shared-ring.md; the same numbers for C are in probe/heapcam_abi.h.
//
// Terms. A *position* is a count of bytes since the ring was made; position p lies at data offset p mod capacity.
// *Head* is the end of what the probe has committed, *tail* the end of what the agent has consumed, the *cursor* the
// end of what Read has given out and Commit has not yet confirmed: tail ≤ cursor ≤ head. A *commit* (of
// the probe) holds whole blocks.
//
//	 0         header_size (65536; ABI 1: 4096)                 header_size + capacity
//	+---------+------------------------------------------------+
//	| header  | data: blocks (stream.md), wraps at capacity    |
//	+---------+------------------------------------------------+
//
// The probe's states, as its header word has them (in brackets: who causes the transition), and what this package
// makes of them:
//
//	          creation complete (probe: magic stored last)
//	starting ---------------------------------------> recording <--> paused   (agent: pause word)
//	   | Open: ErrNotReady until then                     |   |  \
//	   | does not understand the JVM (probe)              |   |   +--> goodbye   VM death (probe): END, then state
//	   v                                                  |   +------> detached  (agent: detach word): likewise
//	refused                                               +----------> gave up   repeated violations: likewise
//	                                                      |
//	                                                      +- - - - - > gone      no state says so: the pid is free or
//	                                                                   another's (start ticks), or exec (not mapped)
//
// A Ring's own states:
//
//	opened --Acquire--> reading --violation--> quarantined (every call gives the same *ViolationError)
//	                       |----another agent's generation in the header--> superseded (ErrSuperseded)
//	                       +----ended or gone, and cursor = head--> Wait gives ErrEnded or ErrGone
//
// Invariants:
//
//  1. The file is read by pread into our own memory and only the copy is looked at; never through a mapping.
//     Otherwise the JVM's user could end the agent by truncating the file (SIGBUS), or change a length between its
//     check and its use.
//  2. Nothing of the file is believed before it is compared: capacity, session and start time must stay what they
//     were at Open, head never goes back, head − tail never exceeds the capacity, blocks fill what was committed
//     exactly. Otherwise one hostile JVM could make the agent allocate, loop or index by its numbers. A violation is
//     final for this Ring (quarantine).
//  3. What Read allocates is bounded by its limit and the largest committed block, hence by the capacity;
//     Options.MaxCapacity bounds that.
//  4. Tail is stored after the caller has persisted what it covers (Commit). Otherwise a killed agent would lose what
//     it had taken.
//  5. Only words of the agent are written, and only while the file still has its size: nothing the owner of the file
//     does makes us write outside the header of a file that they own.
//
// What it cannot detect: a hostile producer that writes well-framed lies (the readers' business), a JVM in another
// *time* namespace (its start ticks and heartbeat are shifted: pass Options.HostPID, and expect Silent), a word torn
// by the memory system inside an aligned 8-byte store of pwrite (not seen on the platforms that we know; a torn tail
// would be at worst a dropped or damaged block, which the framing check finds).
//
// What it does not do: it decodes no payload, knows no ring files, decides nothing about when to ask for sync points.
package shmring
