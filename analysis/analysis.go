// Package analysis makes what the verbs show of a replayed recording: the report, groups, diffs and trends. Each
// renders to JSON of a schema with a version, and to text that fits one screen.
//
// Below it are packages of one job each: stats (intervals, trends), collection (finding the one that a user names),
// sites (attribution, coverage), history (series of classes and sites), leak (the detector), compare (two recordings),
// cost (what recording cost); above it export and check. It reads through package heap and never touches files.
package analysis
