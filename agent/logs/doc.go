// Package logs holds every line that the agent and its recordings log: text, level, cause and remedy.
//
// Terms. A *Message* is one line of the log without its details. Its text is a constant. A *Key* names a detail; the
// same detail has the same key in every line. The *remedy* of a warning or an error is a field of its line.
//
// Levels. Error: somebody must act, or data is lost for good. Warn: heapcam works, but does less than it was asked to.
// Info: something has changed. Debug: the rest.
//
// Invariants:
//
//  1. Nothing is logged but by Write. A test finds calls around it.
//  2. IDs are unique and do not change: alerts search for them.
//  3. docs/reference/logs.md lists every message with the fields that the code gives it. A test fails when it is stale.
//
// What it does not do: it does not bound how much is logged (session.BoundLog does), and does not format (the caller's
// zerolog.Logger does).
package logs
