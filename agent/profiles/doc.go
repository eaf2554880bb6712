// Package profiles gives profiles of the heaps that an agent records to engines that keep profiles: it serves them to
// scrapers, and pushes them to a Pyroscope server.
//
// Terms. A *profile* is of package session: what lives by class and allocation site after the newest collection, and
// what was allocated, survived and was freed in an interval. The class is the leaf frame, since servers make a series
// of each label.
//
// Invariants:
//
//  1. Nothing leaves the host but to the server that the configuration names. Redirects are not followed.
//  2. The queue has at most maxQueue bytes. The oldest profiles make room, which is counted and logged.
//     A file keeps it for the next agent: at an orderly end all of it, at a kill what waited keepEvery ago.
//  3. A profile is sent again until the server has taken or refused it, with the same id, so that a server can tell
//     that it has it.
//  4. Sessions are never kept waiting: what cannot be taken at once is dropped and counted.
//  5. Credentials are in no error and no log line.
//
// Files: encode.go (pprof), hub.go (from sessions to both ways out), push.go (queue, retries), kept.go (the file),
// otlp.go (OpenTelemetry's format), serve.go (scrapers).
package profiles
