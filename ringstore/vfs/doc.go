// Package vfs is the file system as a ring uses it: the seam at which tests count what is occupied and let operations
// fail.
//
// Terms: a file *occupies* its length in whole blocks of 4 KiB, or what the system says if that is more (preallocation,
// extents).
//
// Invariants:
//
//  1. A file is created, appended to, cut at its end, linked and removed. Nothing else happens to it, so a reader that
//     has it open never sees bytes change that it has read.
//  2. Only regular files are opened: a fifo or a device in the place of a ring file is an error, and no hang.
//  3. Errors of the system are passed on unchanged, so that os.ErrNotExist and a full disk (NoSpace) can be recognized.
//
// It does not know what is in a file.
package vfs
