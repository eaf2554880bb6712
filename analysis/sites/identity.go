package sites

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// ID names a site across runs and builds of a program: 16 hexadecimal digits, a hash of the class and of the classes
// and methods of its stack. Lines do not count, nor do the numbers that compilers and the VM give to lambdas, proxies
// and generated accessors (trace.StripHidden has taken those of classes away). Two loaders' classes of one name are
// one. Recordings with different --stack-depth have different ids for stacks that are cut.
func ID(class string, site []StackFrame) string {
	h := sha256.New()
	h.Write([]byte(class))
	for _, f := range site {
		h.Write([]byte{'\n'})
		h.Write([]byte(f.Class))
		h.Write([]byte{'.'})
		h.Write([]byte(unnumbered(f.Method)))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// unnumbered takes the number from the name of a lambda's or an accessor's method: javac numbers them in the order of
// the source (lambda$main$0, access$100).
func unnumbered(method string) string {
	if strings.HasPrefix(method, "lambda$") || strings.HasPrefix(method, "access$") {
		if s := strings.TrimRight(method, "0123456789"); strings.HasSuffix(s, "$") {
			return s
		}
	}
	return method
}

var (
	lineOf   = regexp.MustCompile(`:\d+\)$`)
	numberOf = regexp.MustCompile(`(\.(?:lambda|access)\$(?:[^(]*\$)?)\d+\(`)
)

// Unlined is a frame's text without its line and without the numbers that ID leaves out: the method's name in two
// builds.
func Unlined(frame string) string {
	return numberOf.ReplaceAllString(lineOf.ReplaceAllString(frame, ")"), "$1(")
}
