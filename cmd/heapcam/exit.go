package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// Exit codes, documented by exitTable; `run` gives its command's status instead, and 125 for any failure of its own.
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
	exitNoRoom    = 10  // the disk is full, or a limit of heapcam's own
	exitRunFailed = 125 // run: heapcam itself failed
	exitNotExec   = 126 // run: the command can not be executed
	exitNoCommand = 127 // run: there is no such command
)

// exitTable documents each exit code: man pages are made from it, and the table in docs/operations.md is compared with it.
var exitTable = []struct{ code, meaning string }{
	{"0", "done"},
	{"1", "failed for a reason without a code of its own (I/O)"},
	{"2", "flags or arguments are wrong"},
	{"3", "no such JVM, recording, file, collection or agent"},
	{"4", "not permitted: another user's JVM (`doctor JVM` too), a folder that can not be written, an agent that is not this user's to ask"},
	{"5", "this JVM can not be recorded; `doctor JVM` says why"},
	{"6", "a file or folder is damaged, or not heapcam's; `verify`: also a ring file of another recording, or under a wrong number"},
	{"7", "written by a newer heapcam"},
	{"8", "`verify` found a mismatch"},
	{"9", "`leaks --fail-on-leak` found a leak"},
	{"10", "no room: the disk is full, or `--max-incidents-size` is reached"},
	{"125", "`run`: heapcam itself failed"},
	{"126, 127", "`run`: the command can not be executed, is not found"},
	{"128+n", "`run`: the command was ended by signal n"},
}

// codeError carries its exit code. A silent one has been told already. A misused one is about the command line itself: help is near.
type codeError struct {
	code    int
	err     error
	silent  bool
	misused bool
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

func withCode(code int, format string, args ...any) error {
	return &codeError{code: code, err: fmt.Errorf(format, args...)}
}

func usage(format string, args ...any) error { return withCode(exitUsage, format, args...) }

// misused marks an error of the command line that the list of verbs and flags helps with.
func misused(err error) error {
	if c, ok := err.(*codeError); ok && c.code == exitUsage {
		c.misused = true
	}
	return err
}

// status ends the program with a code and no word.
func status(code int) error {
	if code == 0 {
		return nil
	}
	return &codeError{code: code, err: fmt.Errorf("status %d", code), silent: true}
}

// silent says that err has been told already.
func silent(err error) bool {
	var c *codeError
	return errors.As(err, &c) && c.silent
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
	case errors.Is(err, ringstore.ErrIncidentRoom), ringstore.DiskFull(err):
		return exitNoRoom
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

// kindCodes are the kinds of errors that an agent answers with, and the exit code of each.
var kindCodes = map[api.Kind]int{
	api.BadRequest: exitUsage, api.NotFound: exitNotFound, api.Denied: exitDenied, api.NoRecording: exitNoRecord,
	api.Damaged: exitDamaged, api.TooNew: exitTooNew, api.NoRoom: exitNoRoom,
}

// codeOf is the exit code of an error that an agent answered with.
func codeOf(k api.Kind) int {
	if code, known := kindCodes[k]; known {
		return code
	}
	return exitFailed
}

// kindOf is the kind of error that our agent answers with.
func kindOf(err error) api.Kind {
	code := exitCode(err)
	for k, c := range kindCodes {
		if c == code {
			return k
		}
	}
	return api.Failed
}
