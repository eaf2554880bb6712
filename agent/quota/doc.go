// Package quota divides the limits of the agent among its recordings: disk, write rate, CPU time and memory.
//
// Terms. *Disk* grants each ring the bytes that it may occupy, before it occupies them. A *Level* of a recording is
// its depth and, above the depths, how well it is compressed. A *RateLimit* lowers and raises the level of one
// recording; a *SharedRate* divides one limit among several of them by max-min fairness. *Process* measures the
// agent itself.
//
// Invariants:
//
//  1. What Disk has granted, what ended rings and what incidents occupy together never exceed max_total_size. Otherwise
//     two rings that grow at the same time would.
//  2. No method that a recording calls while it runs waits for the disk: Disk.Share returns at once while another
//     goroutine surveys the folder.
//
// What it does not do: it ends no recording and changes no depth; it says what is wanted, package session asks the
// probe.
package quota

// IncidentsName is the folder of incidents below the folder for recordings.
const IncidentsName = "incidents"
