// Package faultfs mounts a file system whose operations fail when a test wants it. With it tests show how a store
// behaves on a disk that is full, broken, slow or read-only, through the real kernel and with real files.
//
// Terms: an *operation* is opening, reading or a change (Op). One function of the test decides before each operation
// whether it fails.
//
// What it does not do: it loses nothing that was written. The effects of a power failure are tested in memory
// (ringstore).
package faultfs
