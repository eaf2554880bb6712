// Package spool takes what is in the spool folder: rings of JVMs that this agent cannot reach, and recordings from
// elsewhere.
//
// A probe creates its ring there with the option spool:DIR; a person or a program copies a recording there. Rings are
// recorded in place. Recordings are copied to the folder for recordings and then removed here.
//
// Invariants:
//
//  1. Everybody may write here: nothing that is found is followed, or opened before it is known to be a regular file
//     with one name.
//  2. What is not taken is never removed; status says why it is not taken.
//  3. A recording is copied only into room that package quota has reserved.
//
// What it does not do: it reads no ring; Config.Record does. It is for Linux.
package spool

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/shmring"
)

// Status is the state of the spool folder. Rings that are being recorded are sessions.
type Status struct {
	Dir   string `json:"dir"`
	Error string `json:"error,omitempty"` // why it cannot be read
	// Taken counts recordings that were dropped there and are in the folder for recordings now, by this agent.
	Taken uint64 `json:"taken"`
	Left  []Item `json:"left,omitempty"` // what lies there and is not taken, by name; nothing of it is ever removed
}

// Item is something in the spool folder that is not taken.
type Item struct {
	Name   string `json:"name"`
	UID    int    `json:"uid"` // whose it is
	Bytes  int64  `json:"bytes"`
	Reason string `json:"reason"`
}

// Config says what is taken, and where to. All fields are set.
type Config struct {
	Dir      string // the spool folder, an absolute path; it is waited for
	Out      string // the folder for recordings, an absolute path
	KeepFree int64  // bytes of the file system of Out that stay free; 0: none
	MaxRing  uint64 // bytes of a shared ring
	Disk     *quota.Disk
	Log      zerolog.Logger

	// Record records the ring at path, which open opens, unless it is being recorded. It returns why it is not; nil: it
	// is, or will be when the ring is finished.
	Record func(ctx context.Context, path string, open func() (*shmring.Ring, error)) error
	// Forget drops what the daemon knows of rings in Dir that are not seen there any more.
	Forget func(seen func(name string) bool)
}

// Spool takes what is in the spool folder. New makes it; Watch is called once, Status at any time.
type Spool struct {
	cfg Config
	wg  sync.WaitGroup // of recordings that are being taken

	mu     sync.Mutex
	status Status
}

// Status returns a copy of the state, items by name.
func (s *Spool) Status() *Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.Dir, st.Left = s.cfg.Dir, slices.Clone(st.Left)
	slices.SortFunc(st.Left, func(x, y Item) int { return strings.Compare(x.Name, y.Name) })
	return &st
}
