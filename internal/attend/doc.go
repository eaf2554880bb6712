// Package attend runs a verb in a process of its own, so that the program can end while a read of a disk that hangs
// cannot: no exit, no Ctrl-C and no kill ends such a process.
package attend
