package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// Exit codes, documented in docs/operations.md; `run` gives its command's status instead, and 125 for any failure of its own.
const (
	exitOK        = 0
	exitFailed    = 1   // anything that has no code of its own
	exitUsage     = 2   // flags or arguments
	exitNotFound  = 3   // no such JVM, recording or file
	exitDenied    = 4   // not permitted
	exitNoRecord  = 5   // this JVM can not be recorded
	exitDamaged   = 6   // a file is damaged, of another recording, or not heapcam's
	exitTooNew    = 7   // written by a newer heapcam
	exitMismatch  = 8   // verify: replayed and listed state differ
	exitLeak      = 9   // leaks --fail-on-leak: there is one
	exitRunFailed = 125 // run: heapcam itself failed
	exitNotExec   = 126 // run: the command can not be executed
	exitNoCommand = 127 // run: there is no such command
)

// codeError carries its exit code. A silent one has been told already.
type codeError struct {
	code   int
	err    error
	silent bool
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

func withCode(code int, format string, args ...any) error {
	return &codeError{code: code, err: fmt.Errorf(format, args...)}
}

func usage(format string, args ...any) error { return withCode(exitUsage, format, args...) }

// status ends the program with a code and no word.
func status(code int) error {
	if code == 0 {
		return nil
	}
	return &codeError{code: code, err: fmt.Errorf("status %d", code), silent: true}
}

func message(err error) string {
	var c *codeError
	if errors.As(err, &c) && c.silent {
		return ""
	}
	return err.Error()
}

// exitCode is the one place where errors become codes.
func exitCode(err error) int {
	var (
		code     *codeError
		tooNew   *trace.TooNewError
		ringNew  *shmring.TooNewError
		corrupt  *trace.CorruptError
		noRing   *shmring.NotRingError
		violates *shmring.ViolationError
	)
	switch {
	case errors.As(err, &code):
		return code.code
	case errors.As(err, &tooNew), errors.As(err, &ringNew), storeTooNew(err):
		return exitTooNew
	case errors.As(err, &corrupt), errors.Is(err, trace.ErrTorn), errors.As(err, &noRing), errors.As(err, &violates), storeDamaged(err):
		return exitDamaged
	case errors.Is(err, syscall.ENOTDIR): // a file was named where a folder is meant
		return exitUsage
	case errors.Is(err, attach.ErrNoProcess), errors.Is(err, fs.ErrNotExist), storeNotFound(err):
		return exitNotFound
	case errors.Is(err, attach.ErrPermission), errors.Is(err, fs.ErrPermission), errors.Is(err, os.ErrPermission):
		return exitDenied
	case errors.Is(err, attach.ErrNotJVM), errors.Is(err, attach.ErrDisabled), errors.Is(err, attach.ErrTimeout), errors.Is(err, attach.ErrReadOnly), errors.Is(err, probe.ErrNone):
		return exitNoRecord
	}
	return exitFailed
}
