// Package faultfs mounts a file system that fails when a test wants it, over a folder that does not: what a store makes
// of a disk that is full, broken, slow or read-only is tested through the real kernel, with real files.
//
// Terms: an *operation* is opening, reading and what changes something (Op); faults are decided by one function, asked
// before each of them.
//
// What it does not do: nothing is lost that was written; what a power loss takes is tested in memory (ringstore).
package faultfs
