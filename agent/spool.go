package agent

import (
	"slices"
	"strings"
)

// SpoolStatus is what became of the spool folder: a folder for the rings of JVMs that this agent can not reach (probe option spool:DIR), and for
// recordings from elsewhere. Rings that are being recorded are sessions.
type SpoolStatus struct {
	Dir   string      `json:"dir"`
	Error string      `json:"error,omitempty"` // why it can not be looked into
	Taken uint64      `json:"taken"`           // recordings that were dropped there and are in the folder for recordings now, by this agent
	Left  []SpoolItem `json:"left,omitempty"`  // what lies there and is not taken, by name; nothing of it is ever removed
}

// SpoolItem is something in the spool folder that is not taken.
type SpoolItem struct {
	Name   string `json:"name"`
	UID    int    `json:"uid"` // whose it is
	Bytes  int64  `json:"bytes"`
	Reason string `json:"reason"`
}

// Spool gives the state of the spool folder, nil without one.
func (a *Agent) Spool() *SpoolStatus {
	if a.cfg.Spool == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	st := a.spool
	st.Dir, st.Left = a.cfg.Spool, slices.Clone(st.Left)
	slices.SortFunc(st.Left, func(x, y SpoolItem) int { return strings.Compare(x.Name, y.Name) })
	return &st
}
