package retention

// jvmRoots is what the probe says of roots that a JVM before 25 does not name: those of its own storage. No data
// structure of an application hangs on one of them alone.
const jvmRoots = "roots of the JVM itself that are neither classes, threads nor JNI references"

// frameRests is what the probe says where it cannot read the stacks of threads: arguments of native methods and what
// compiled code keeps, which the variables of a frame hold in nearly all cases.
const frameRests = "what frames hold besides their variables"

// Settles says whether an object of the application that the listing did not reach is garbage: nothing is missing but
// the JVM's own roots and the rest of frames.
func (l *Liveness) Settles() bool { return Settles(l.Missing) }

// Settles is Liveness.Settles of a listing with these parts missing.
func Settles(missing []string) bool {
	for _, m := range missing {
		if m != jvmRoots && m != frameRests {
			return false
		}
	}
	return true
}
