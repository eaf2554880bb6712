// Package site names allocation sites: the same name on every host and in every run, for those who record as for those
// who read. A site is a class and the stack that allocated it.
package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// MaxFrames bounds the frames of a site in what is printed and in what ID hashes.
const MaxFrames = 512

// Frame is one frame of a stack. Names are as Java writes them; a Line of 0 is not known.
type Frame struct {
	Class, Method, File string
	Line                int
	Native              bool
}

func (f Frame) String() string {
	if f.Line > 0 {
		return fmt.Sprintf("%s.%s(%s:%d)", f.Class, f.Method, f.File, f.Line)
	}
	if f.Native {
		return fmt.Sprintf("%s.%s(native)", f.Class, f.Method)
	}
	return fmt.Sprintf("%s.%s", f.Class, f.Method)
}

// Join is a stack as one text, innermost frame first.
func Join(stack []Frame) string {
	s := make([]string, len(stack))
	for i, f := range stack {
		s[i] = f.String()
	}
	return strings.Join(s, "; ")
}

// StackID names a stack by its text, lines included: 16 hexadecimal digits.
func StackID(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:8])
}

// ID names a site across runs and builds of a program: 16 hexadecimal digits, a hash of the class and of the classes
// and methods of its stack. Lines do not count, nor do the numbers that compilers and the VM give to lambdas, proxies
// and generated accessors (trace.StripHidden has taken those of classes away). Two loaders' classes of one name are
// one. Recordings with different --stack-depth have different ids for stacks that are cut.
func ID(class string, stack []Frame) string {
	h := sha256.New()
	h.Write([]byte(class))
	for _, f := range stack {
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
