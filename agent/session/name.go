package session

import (
	"os/user"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/agent/jvms"
)

// FolderName returns the name of a recording: the program's name and the JVM's id (see jvms.ID: pid and start).
func FolderName(name string, pid int, ticks uint64) string {
	return CleanName(name) + "-" + jvms.ID(pid, ticks)
}

// MaxName bounds the name within a folder's name, bytes.
const MaxName = 48

// CleanName keeps what is safe in a file name on every platform, and at most MaxName bytes of it: "jvm" if that is
// nothing.
func CleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '$':
			return r
		}
		return '_'
	}, s)
	s = strings.TrimLeft(s, ".")
	if len(s) > MaxName {
		s = s[len(s)-MaxName:]
	}
	if s == "" {
		return "jvm"
	}
	return s
}

// UserName names a user of this host for people.
func UserName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return "user " + u.Username
	}
	return "uid " + strconv.Itoa(uid)
}
