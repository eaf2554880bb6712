//go:build !arm64

package shmring

// fence orders all that this thread read and wrote before it before all that it reads and writes after it. x86-64
// needs none for the ring: reads and writes each keep their order there. Other processors read recordings only.
func fence() {}
