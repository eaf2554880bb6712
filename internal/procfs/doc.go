// Package procfs reads what /proc says about one process, and opens files below the process' root.
//
// Terms. A *Process* is an open folder /proc/PID. The kernel binds it to the process, not to the number: when the
// process has ended, each read gives an error, also if another process has the same pid by then.
//
// Invariants:
//
//  1. Each read is bounded: a process can claim that gigabytes of its memory are its command line.
//  2. A path below a process' root is resolved inside that root (openat2 RESOLVE_IN_ROOT). The process' user may have
//     made any link there; an absolute link would otherwise lead into our own root.
//  3. A file is checked before it is opened for reading (O_PATH, fstat, then open of that very file): opening a fifo
//     can block forever, opening a device can act.
//
// Linux only; packages jvms, attach and place use it.
package procfs

const (
	// MaxText bounds what is read of a process' command line or environment.
	MaxText = 2 << 20
	// MaxMaps bounds what is read of a process' mappings: a JVM with a hundred thousand mappings has 10 MiB.
	MaxMaps = 16 << 20
)
