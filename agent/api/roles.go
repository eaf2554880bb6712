package api

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"

	"golang.org/x/time/rate"

	"github.com/heapcam/heapcam/agent/session"
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
	"references": Owner,
	"attach":     Operator, "reload": Operator, "settle": Operator,
}

// Group is whose members are operators of an agent that runs as root.
const Group = "heapcam"

// OverflowUID stands for every user that our user namespace does not know: it names no particular user.
const OverflowUID = 65534

// Caller is who asks.
type Caller struct {
	Name  string // for the log
	UID   int    // -1: no user of this host
	Role  Role
	Scope []string // if not nil: of the verbs that Role may, these

	Rate    *rate.Limiter // of its pulls, bytes a second with pullPiece at once; nil: none
	MaxPull int64         // bytes of one pull, as far as whole files allow; 0: any
}

// May says whether the caller may ask for a verb at all.
func (c Caller) May(verb string) bool {
	need, known := Verbs[verb]
	return known && c.Role >= need && (c.Scope == nil || slices.Contains(c.Scope, verb))
}

// Sees says whether the caller may know of what belongs to the user uid.
func (c Caller) Sees(uid int) bool {
	return c.Role == Operator || c.Role == Owner && c.UID == uid && uid >= 0 && uid != OverflowUID
}

type peerKey struct{}

// peer is the process at the other end of a Unix socket, as the kernel reports it.
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
	case p.uid == OverflowUID:
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

// Who names the caller for people; "": it is not known.
func (c Caller) Who() string {
	if c.UID < 0 {
		return ""
	}
	return session.UserName(c.UID)
}
