package api

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxGroups bounds the groups of a process: the kernel's own limit.
const maxGroups = 65536

// peerOf asks the kernel who connected. A caller that the kernel does not name has no rights.
func peerOf(c net.Conn) peer {
	p := peer{uid: OverflowUID, ok: true}
	if g, is := c.(*guest); is {
		c = g.Conn
	}
	u, is := c.(*net.UnixConn)
	if !is {
		return p
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return p
	}
	_ = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			p.pid, p.uid, p.groups = int(cred.Pid), int(cred.Uid), append(peerGroups(fd), int(cred.Gid))
		}
	})
	return p
}

// peerGroups gives the supplementary groups that the peer had when it connected (SO_PEERGROUPS, Linux 4.13).
func peerGroups(fd uintptr) []int {
	b := make([]uint32, 64)
	for {
		n := uint32(4 * len(b))
		_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)), 0)
		if e == unix.ERANGE && len(b) < maxGroups {
			b = make([]uint32, min(4*len(b), maxGroups))
			continue
		}
		if e != 0 {
			return nil
		}
		var out []int
		for _, g := range b[:min(int(n/4), len(b))] {
			out = append(out, int(g))
		}
		return out
	}
}
