package api

import (
	"net"
	"os"
	"strconv"
	"sync"
)

const (
	// maxGuests bounds the connections of callers that are no operators, all together and of one user or address: each
	// costs a goroutine and a descriptor.
	maxGuests     = 64
	maxGuestsEach = 8
)

// guests accepts connections, and turns away those of who has too many.
type guests struct {
	net.Listener
	key func(net.Conn) (who string, unlimited bool)

	mu  sync.Mutex
	n   map[string]int
	all int
}

// localKey counts by user; operators are not counted.
func localKey(c net.Conn) (string, bool) {
	p := peerOf(c)
	return strconv.Itoa(p.uid), p.caller(os.Geteuid(), groupID()).Role == Operator
}

// LimitConnections bounds the connections that l accepts, all together and of one address; it closes those beyond.
func LimitConnections(l net.Listener) net.Listener {
	return &guests{Listener: l, n: map[string]int{}, key: func(c net.Conn) (string, bool) {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		return host, false
	}}
}

// guest is a connection that counts.
type guest struct {
	net.Conn
	once sync.Once
	end  func()
}

func (g *guest) Close() error {
	g.once.Do(g.end)
	return g.Conn.Close()
}

func (l *guests) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who, unlimited := l.key(c)
		if unlimited {
			return c, nil
		}
		l.mu.Lock()
		full := l.all >= maxGuests || l.n[who] >= maxGuestsEach
		if !full {
			l.all++
			l.n[who]++
		}
		l.mu.Unlock()
		if full {
			c.Close()
			continue
		}
		return &guest{Conn: c, end: func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.all--
			if l.n[who]--; l.n[who] == 0 {
				delete(l.n, who)
			}
		}}, nil
	}
}
