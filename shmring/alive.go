package shmring

// Life is what can be said about the process that writes a ring.
type Life int

// Lives.
const (
	Alive  Life = iota // the process is there
	Silent             // it is there, but its heartbeat is older than StaleAfterNS: stopped, frozen, or starved
	Ended              // the state says that nothing more will come
	Gone               // the process is gone, is another one, or maps the ring no longer (exec)
)

func (l Life) String() string {
	switch l {
	case Alive:
		return "alive"
	case Silent:
		return "silent"
	case Ended:
		return "ended"
	}
	return "gone"
}

// Alive looks at the state, then at the process. Errors as Status.
func (r *Ring) Alive() (Life, error) {
	s, err := r.Status()
	if err != nil {
		return Gone, err
	}
	return r.alive(s), nil
}

func (r *Ring) alive(s Status) Life {
	if s.State.Ended() {
		return Ended
	}
	silent := s.Heartbeat != 0 && stale(s.Heartbeat, Monotonic())
	switch p := r.process(s, silent); {
	case p == Gone:
		return Gone
	case silent:
		return Silent
	}
	return Alive
}

// AgentAlive reports whether an agent has set its heartbeat within StaleAfterNS.
func (s Status) AgentAlive() bool {
	return s.AgentGeneration != 0 && !stale(s.AgentHeartbeat, Monotonic())
}

// stale compares a heartbeat with now. One from the future is a lie or another clock: stale when far off.
func stale(beat, now uint64) bool {
	d := int64(now - beat)
	return d > StaleAfterNS || d < -StaleAfterNS
}
