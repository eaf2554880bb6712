// Package agent is the daemon: it finds the shared rings of many JVMs and keeps one session for each.
//
// Terms. A *session* is one load of the probe into one JVM, and the goroutine that records it (package session). A
// *recording* is the ring folder it fills, `<name>-<pid>-<start>`. An agent *watches* folders in which probes create
// their rings; a ring that appears there becomes a session.
//
//	ring file appears -> open, acquire -> session.Run -> ended and drained: the ring's file is removed
//	                                          |     -> agent_max_memory, or no room at the end: tried again later
//	                                          |     -> protocol violation: never read again
//	                                          -> ctx done: the ring stays for the next agent
//
// Invariants:
//
//  1. A fault of one JVM ends its own session and no other.
//  2. A ring folder belongs to one session at a time. Otherwise two recordings would be mixed.
//  3. The service manager keeps rings over a restart of the agent, each by an open file description of its own.
//     Otherwise the lock of an agent that was killed would stay.
//  4. Every goroutine has ended when Run returns, except those that wait for a disk that does not answer.
//
// What it does not do: it reads no ring (package session), serves no requests (package api), does not attach
// (agent/attach), finds no JVMs (agent/jvms), and never reconstructs a heap (package heap).
package agent
