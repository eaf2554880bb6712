// Package attach speaks HotSpot's dynamic attach protocol: it loads an agent library into a running JVM and sends it
// diagnostic commands, without a JDK and without a helper.
//
// The protocol, on Linux. A JVM listens on a socket <tmp>/.java_pid<N>, N its pid in its own pid namespace. If it does
// not yet, a file .attach_pid<N> in its working directory (or <tmp>) followed by SIGQUIT makes it. A request is
// version "1", a command and three arguments, each NUL-terminated; the answer is a line with a status number, then
// text, until the JVM closes.
//
// Invariants:
//
//  1. SIGQUIT is sent only to the process that was asked for, and only if it catches it (a JVM that attaching was not
//     disabled in): any other would be killed. A process that took over the pid gets nothing.
//  2. Root lends the JVM no rights: files are made and sockets connected with the ids of the JVM's user alone (As).
//  3. Who answers is the JVM itself, as the kernel says (SO_PEERCRED), by a socket that no link led to.
//  4. The trigger file is removed again, whatever happened.
//  5. What the JVM answers is bounded (maxAnswer, maxLoadAnswer) and never believed to be anything but text.
//  6. Every wait ends with the context, at the latest after Timeout.
//
// What it does not do: find JVMs (package jvms), copy the library to where the JVM sees it (package place), detach an
// agent (the shared ring's detach word does), systems other than Linux (ErrUnsupported).
package attach

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Timeout bounds one call when the context has no earlier deadline. Loading runs the agent's start inside a
// safepoint-free JVM thread; a JVM that collects garbage all the time may take seconds to answer.
const Timeout = 15 * time.Second

const (
	// maxAnswer bounds an answer in bytes: the largest known, a class histogram of many classes, takes a few MiB.
	maxAnswer = 64 << 20
	// maxLoadAnswer bounds the answer to load: a return code, or one line of dlopen's.
	maxLoadAnswer = 64 << 10
)

// JVM names a process. StartTicks (field 22 of /proc/PID/stat) tells it from another one that has its pid later; 0
// stands for whichever process has the pid now.
type JVM struct {
	PID        int
	StartTicks uint64
}

var (
	// ErrNoProcess says that there is no such process.
	ErrNoProcess = errors.New("no such process")
	// ErrNotJVM says that the process does not map libjvm.
	ErrNotJVM = errors.New("not a HotSpot JVM")
	// ErrPermission says that the JVM belongs to another user and we lack the rights.
	ErrPermission = errors.New("not permitted: the JVM runs as another user; use root or that user")
	// ErrDisabled says that the JVM does not take attaching: -XX:+DisableAttachMechanism, or it does not catch SIGQUIT
	// and does not listen either. (With -Xrs it does not catch it, but listens from its start.)
	ErrDisabled = errors.New("attaching is disabled in this JVM (-XX:+DisableAttachMechanism)")
	// ErrLoading says that the JVM answers, and loads no library.
	ErrLoading = errors.New("the JVM does not load agents while it runs (-XX:-EnableDynamicAgentLoading)")
	// ErrReadOnly says that the JVM cannot open its socket.
	ErrReadOnly = errors.New("the JVM cannot open the socket for attaching: its /tmp is mounted read-only")
	// ErrTimeout says that the JVM did not answer in time: it is stopped, or busy.
	ErrTimeout = errors.New("the JVM did not answer in time: it is stopped or very busy")
	// ErrProtocol says that the answer was none of the protocol.
	ErrProtocol = errors.New("the JVM's answer is not of the attach protocol")
)

// Error is what every function gives: the process, what was tried, and a cause that errors.Is knows.
type Error struct {
	PID int
	Op  string
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("attach to pid %d: %s: %v", e.PID, e.Op, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// ReturnError says that the library was loaded and its Agent_OnAttach returned Code, not 0. The library stays in the
// JVM.
type ReturnError struct {
	Code int
	Text string // what else the JVM said
}

func (e *ReturnError) Error() string {
	return fmt.Sprintf("the probe refused to start (return code %d)", e.Code)
}

// LoadError says that the JVM could not load the library; Text is its own (dlopen's) explanation.
type LoadError struct{ Text string }

func (e *LoadError) Error() string { return "the JVM cannot load the library: " + e.Text }

// CommandError says that the JVM gave a status other than 0 to a command.
type CommandError struct {
	Status int
	Text   string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("the JVM answered with status %d: %s", e.Status, firstLine(e.Text))
}

// Load makes the JVM load the library at libPath, an absolute path as *the JVM* sees it, and start it with options.
// Errors, in an *Error: the sentinels above, *ReturnError, *LoadError, the context's.
func Load(ctx context.Context, j JVM, libPath, options string) error {
	answer, err := call(ctx, j, maxLoadAnswer, "load", libPath, "true", options)
	if err == nil {
		err = parseLoad(answer)
	}
	if err != nil {
		return &Error{j.PID, "load " + libPath, err}
	}
	return nil
}

// Command sends one command (properties, jcmd, threaddump, inspectheap, …) with up to three arguments and gives the
// JVM's text. For jcmd the arguments are one: Command(ctx, j, "jcmd", "GC.class_histogram -all").
// Errors, in an *Error: the sentinels above, *CommandError, the context's.
func Command(ctx context.Context, j JVM, name string, args ...string) (string, error) {
	answer, err := call(ctx, j, maxAnswer, name, args...)
	if err == nil {
		var status int
		var text string
		if status, text, err = parseAnswer(answer); err == nil {
			if status == 0 {
				return text, nil
			}
			err = &CommandError{status, text}
		}
	}
	return "", &Error{j.PID, name, err}
}

// request frames a command. NUL would end an argument early, so it cannot be sent.
func request(name string, args []string) ([]byte, error) {
	if len(args) > 3 {
		return nil, errors.New("more than three arguments")
	}
	b := append([]byte("1\x00"+name), 0)
	for i := range 3 {
		if i < len(args) {
			b = append(b, args[i]...)
		}
		b = append(b, 0)
	}
	if strings.Count(string(b), "\x00") != 5 {
		return nil, errors.New("an argument contains a NUL byte")
	}
	return b, nil
}

func parseAnswer(b []byte) (status int, text string, err error) {
	line, text, _ := strings.Cut(string(b), "\n")
	status, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0, "", fmt.Errorf("%w: %q", ErrProtocol, firstLine(line))
	}
	return status, text, nil
}

// parseLoad reads the answer to load. Forms seen: "0\nreturn code: N" (JDK 9 and later, loaded); "0\n<text>" (not
// loaded: dlopen's words, JDK 17); "-1\n<text>" (JDK 8, and not found); and the status itself as Agent_OnAttach's
// return value (JDK 8).
func parseLoad(b []byte) error {
	status, text, err := parseAnswer(b)
	if err != nil {
		return err
	}
	line := firstLine(text)
	switch rest, ok := strings.CutPrefix(line, "return code: "); {
	case ok:
		code, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil {
			return fmt.Errorf("%w: %q", ErrProtocol, line)
		}
		if code != 0 {
			return &ReturnError{code, strings.TrimSpace(strings.TrimPrefix(text, line))}
		}
		return nil
	case status == 0 && line == "":
		return nil
	case line == "" && status > 0:
		return &ReturnError{status, ""}
	case line == "":
		return &LoadError{"the JVM gave no reason"}
	}
	return &LoadError{line}
}

// firstLine gives the first line of a foreign text, of a length that fits a message, without control characters.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > 400 {
		s = s[:400] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
