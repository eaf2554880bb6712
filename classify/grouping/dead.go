package grouping

import (
	"fmt"
)

// Dead is how much of a group nothing keeps alive.
type Dead struct {
	// Objects and Bytes are estimates where those of the group are.
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
}

func (d *Dead) plus(o *Dead) *Dead {
	if d == nil {
		d = &Dead{}
	}
	return &Dead{d.Objects + o.Objects, d.Bytes + o.Bytes}
}

// Bury gives each node how much of it is in the node with the same path of a tree of the garbage alone, which may be
// nil.
func (n *Node) Bury(dead *Node) {
	n.Dead = &Dead{}
	if dead != nil {
		n.Dead.Objects, n.Dead.Bytes = min(dead.Objects, n.Objects), min(dead.Bytes, n.Bytes)
	}
	at := map[string]*Node{}
	if dead != nil {
		for _, c := range dead.Children {
			at[childKey(c)] = c
		}
	}
	for _, c := range n.Children {
		c.Bury(at[childKey(c)])
	}
}

// childKey tells children apart: a hierarchy's node may have one of its own level and one of the next that are called
// alike.
func childKey(n *Node) string { return fmt.Sprint(n.Level, " ", n.Key) }
