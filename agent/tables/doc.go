// Package tables writes what an agent knows of its JVMs as tables into a bucket: sites and their stacks, collections,
// and verdicts on incidents, for engines that query them in SQL (package internal/tables has the rows).
//
// Terms: a *file* is the rows of one table and one service. It waits in the folder .tables of the folder for recordings
// under its key, until the bucket has it. A service is a part of keys: TABLE/service=SERVICE/date=DATE/FILE.parquet.
//
// Invariants:
//
//  1. Files that wait have at most MaxQueue bytes. The oldest make room, which is counted and logged.
//  2. A file is in the bucket once, whatever happens to the agent, the server and the connection. It replaces no
//     object.
//  3. Sessions never wait: rows that cannot be taken at once are dropped and counted.
//  4. Rows leave the host only for the configured bucket. Names of JVMs cannot choose another key than one below the
//     prefix.
//
// Files: gather.go (rows to files), queue.go (files to the bucket).
package tables
