package jvms

// Kills are counters of the processes that the kernel killed for want of memory, as far as they concern one process.
// The zero value knows nothing.
type Kills struct {
	groups  []killGroup // the process' memory cgroup and those above it that exist, the lowest first
	deep    bool        // a group counts what is killed in those below it, too
	machine uint64      // kills on this machine
	known   bool        // machine is
}

// killGroup is a memory cgroup and its counters.
type killGroup struct {
	path   string // of its folder
	id     fileID // another cgroup of the same path has another one
	depth  int    // 0: it is that of the process; else so many steps above it
	kills  uint64 // processes that the kernel killed in it
	failed uint64 // how often its limit was reached
	limit  uint64 // bytes; 0: none
}

// fileID identifies a file while it exists.
type fileID struct{ dev, ino uint64 }
