package api

import (
	"sync"
	"time"
)

const (
	// changeEvery and ChangesAtOnce bound how often a user who is no operator may change something: each change is a
	// line in the log, and each resume a sync point.
	changeEvery   = time.Second
	ChangesAtOnce = 10
	// maxChangers bounds the users that are remembered.
	maxChangers = 1024
)

// nobodys is the user of all callers who have no recording here, together: one user may have tens of thousands of
// numbers (subuid(5)).
const nobodys = -1

// changes remembers when each user may have made the last of its changes.
type changes struct {
	mu sync.Mutex
	at map[int]time.Time // until when a user's changes are used up, ChangesAtOnce ahead of now at most
}

// allow counts a change of uid, or says that there were too many.
func (c *changes) allow(uid int, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[int]time.Time{}
	}
	next := c.at[uid]
	if next.Before(now) {
		next = now
	}
	next = next.Add(changeEvery)
	if next.Sub(now) > ChangesAtOnce*changeEvery {
		return false
	}
	if len(c.at) >= maxChangers {
		for u, t := range c.at {
			if t.Before(now) {
				delete(c.at, u)
			}
		}
		if _, known := c.at[uid]; !known && len(c.at) >= maxChangers {
			return false
		}
	}
	c.at[uid] = next
	return true
}
