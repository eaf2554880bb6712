// Package fakejvm holds a process that is a JVM as far as the probe can see (fakejvm.c), and tests that record it where
// no JVM of the tests runs: on musl. tools/test-wine does the same for Windows. It has no Go code of its own.
package fakejvm
