package jvms

import "strconv"

// Footprint is what memory a JVM's process takes, in bytes. 0: not known. See trace.Process for what each one means.
type Footprint struct {
	RSS, Anon, Swap, Threads, Heap, Metaspace, Code, Classes, Limit, Used uint64
}

// maxCounter bounds what a counter of a JVM may say.
const maxCounter = 1 << 50

// fromPerf takes in the JVM's counters: whoever owns the JVM may have written them.
func (f *Footprint) fromPerf(c map[string]string) {
	n := func(key string) uint64 {
		x, err := strconv.ParseUint(c[key], 10, 64)
		if err != nil || x > maxCounter {
			return 0
		}
		return x
	}
	f.Heap = n("sun.gc.generation.0.capacity") + n("sun.gc.generation.1.capacity")
	f.Metaspace, f.Code = n("sun.gc.metaspace.used"), n("sun.ci.nmethodSize")
	loaded := n("java.cls.loadedClasses") + n("java.cls.sharedLoadedClasses")
	f.Classes = loaded - min(loaded, n("java.cls.unloadedClasses")+n("java.cls.sharedUnloadedClasses"))
}
