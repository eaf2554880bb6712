// Package pull writes recordings as containers (tar), and takes containers in: Pull, Salvage, Import.
//
//	container: segments, oldest first | manifest.json
//
// Invariants:
//
//  1. A container without a manifest was cut off: the manifest is the last member, and names size and SHA-256 of each.
//  2. A pull holds up a ring for one segment at most: it links all that it wants and locks the one that it reads. What
//     the ring evicts meanwhile is named in the manifest.
//  3. An imported container is not trusted: every copy is checked as by verify, and an error leaves nothing.
//
// It decodes blocks only to cut a recording at collections (Exact) and to leave names out (Redact).
package pull
