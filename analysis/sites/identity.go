package sites

import (
	"regexp"

	"github.com/heapcam/heapcam/trace/site"
)

// ID names a site across runs and builds of a program, as package site does.
func ID(class string, stack []StackFrame) string {
	frames := make([]site.Frame, len(stack))
	for i, f := range stack {
		frames[i] = f.frame()
	}
	return site.ID(class, frames)
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
