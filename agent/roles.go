package agent

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Role is what a caller may do; docs/security.md has the table.
type Role int

// Roles, each with what the one before may.
const (
	Stranger Role = iota // nothing
	Owner                // see and pull the recordings of its own JVMs, pause them, and detach from its JVMs
	Operator             // all
)

// Verbs are what the API does, and the role that each needs. An owner's verbs are about its own recordings only.
var Verbs = map[string]Role{
	"status": Owner, "pull": Owner, "detach": Owner, "pause": Owner, "resume": Owner,
	"attach": Operator, "reload": Operator,
}

// Group is whose members are operators of an agent that runs as root.
const Group = "heapcam"

// overflowUID stands for every user that our user namespace does not know: it is nobody in particular.
const overflowUID = 65534

// Caller is who asks.
type Caller struct {
	Name  string // for the log
	UID   int    // -1: no user of this host
	Role  Role
	Scope []string // if not nil: of the verbs that Role may, these

	Rate    *rateLimit // of its pulls; nil: none
	MaxPull int64      // bytes of one pull, as far as whole files allow; 0: any
}

// May says whether the caller may ask for a verb at all.
func (c Caller) May(verb string) bool {
	need, known := Verbs[verb]
	return known && c.Role >= need && (c.Scope == nil || slices.Contains(c.Scope, verb))
}

// Sees says whether the caller may know of what belongs to the user uid.
func (c Caller) Sees(uid int) bool {
	return c.Role == Operator || c.Role == Owner && c.UID == uid && uid >= 0 && uid != overflowUID
}

type peerKey struct{}

// peer is the process at the other end of a Unix socket, as the kernel tells.
type peer struct {
	pid, uid int
	groups   []int
	ok       bool
}

// keepPeer is for http.Server.ConnContext.
func keepPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerOf(c))
}

// localCaller says who is at the other end of the agent's socket.
func localCaller(r *http.Request) Caller {
	p, _ := r.Context().Value(peerKey{}).(peer)
	return p.caller(os.Geteuid(), groupID())
}

func (p peer) caller(self, group int) Caller {
	c := Caller{Name: "uid " + strconv.Itoa(p.uid) + " pid " + strconv.Itoa(p.pid), UID: p.uid, Role: Owner}
	switch {
	case !p.ok: // no such thing on this system: the mode of the socket decides
		c = Caller{Name: "local", UID: -1, Role: Operator}
	case p.uid == overflowUID:
		c.Role = Stranger
	case p.uid == 0, p.uid == self, group > 0 && slices.Contains(p.groups, group):
		c.Role = Operator
	}
	return c
}

// groupID gives the id of Group, 0 if there is no such group.
func groupID() int {
	g, err := user.LookupGroup(Group)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(g.Gid)
	if err != nil {
		return 0
	}
	return n
}

// controls says whether the caller may pause s and detach from it. Its ring's owner alone does not say so, as it does for what was recorded:
// the process itself must be wholly the caller's now. One that has taken another user's rights is that user's, too, and one that can not be seen
// from here may be anybody's.
//
// All users are as the agent's user namespace counts them: the kernel translates those of SO_PEERCRED and of /proc alike, and who has no number
// there is overflowUID, which is nobody. So root of a container with a user namespace of its own is an ordinary user here.
func (c Caller) controls(s *session) bool {
	return c.Role == Operator || c.Sees(s.status.UID) && !s.status.Spool && ownedBy(s.status.PID, s.status.StartTicks, c.UID)
}

// who names the caller for people; "": it is not known.
func (c Caller) who() string {
	if c.UID < 0 {
		return ""
	}
	return userName(c.UID)
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return "user " + u.Username
	}
	return "uid " + strconv.Itoa(uid)
}

const (
	// changeEvery and changesAtOnce bound how often a user who is no operator may change something: each change is a line in the log, and each
	// resume a sync point.
	changeEvery   = time.Second
	changesAtOnce = 10
	// maxChangers bounds the users that are remembered.
	maxChangers = 1024
)

// nobodys is the user of all callers who have no recording here, together: one user may have tens of thousands of numbers (subuid(5)).
const nobodys = -1

// bucket gives as whose a caller's changes and refusals count.
func (a *Agent) bucket(c Caller) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.sessions {
		if e.s != nil && e.s.status.UID == c.UID { // it never changes
			return c.UID
		}
	}
	return nobodys
}

// changes remembers when each user may have made the last of its changes.
type changes struct {
	mu sync.Mutex
	at map[int]time.Time // until when a user's changes are used up, changesAtOnce ahead of now at most
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
	if next.Sub(now) > changesAtOnce*changeEvery {
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
