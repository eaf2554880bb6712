// Package e2e holds the tests of the whole: the heapcam binary on real JVMs. It has no code of its own.
//
// Each test runs a program of java/ under `heapcam run` and has the JVM log its pauses. It compares the recording with
// what the JVM itself reports: its exit status, its log, jcmd's class histogram, JVMTI's heap iteration. `verify`
// replays each recording and compares it with every sync point. What a machine cannot run (a JDK that is not installed,
// a binary without the probe) is skipped with a line "not run: …" that the test command repeats at its end.
// HEAPCAM_FULL=1 runs the long rounds, HEAPCAM_BIN names a binary to test instead of the one built from the tree,
// HEAPCAM_KEEP a folder that the recordings of failing tests are copied to.
package e2e
