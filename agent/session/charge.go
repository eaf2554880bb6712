package session

import "runtime"

// charged does f and charges the session with the CPU time that it took.
func (s *Session) charged(f func() error) error {
	runtime.LockOSThread() // its clock is the thread's
	defer runtime.UnlockOSThread()
	from := threadCPU()
	err := f()
	used := threadCPU() - from
	c := &s.steer.cpu
	c.spent += used
	s.set(func(st *Status) { st.AgentCPUNS = uint64(c.spent) })
	c.process.Charge(used)
	return err
}
