package shmring

// fence orders all that this thread read and wrote before it before all that it reads and writes after it, as every
// processor sees it. The agent reads and writes the ring by system calls, and entering or leaving the kernel orders
// nothing on a weak memory model; an atomic operation on another word does not on every arm64 either (before ARMv8.1
// it is a loop that later reads may overtake). Fences of the probe: heapcam_abi.h, "memory order".
func fence()
