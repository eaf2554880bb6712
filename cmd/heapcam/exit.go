package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/svc"
	"github.com/heapcam/heapcam/trace"
)

// Exit codes. exitDocs documents them.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitNotFound  = 3
	exitDenied    = 4
	exitNoRecord  = 5
	exitDamaged   = 6
	exitTooNew    = 7
	exitMismatch  = 8
	exitLeak      = 9
	exitNoRoom    = 10
	exitRunFailed = 125
	exitNotExec   = 126
	exitNoCommand = 127
)

// exitDocs says what each exit code means. Man pages, `heapcam help exit-codes` and docs/reference/exit-codes.md are
// made from it.
var exitDocs = []struct{ code, meaning string }{
	{"0", "done"},
	{"1", "failed for a reason without a code of its own (I/O)"},
	{"2", "flags or arguments are wrong; `attach`: this JVM is already recorded"},
	{"3", "no such JVM, recording, file, collection or agent"},
	{"4", "not permitted: another user's JVM (`doctor JVM` too), a folder that cannot be written, an agent that this " +
		"user may not ask"},
	{"5", "this JVM cannot be recorded; `doctor JVM` says why"},
	{"6", "a file or folder is damaged, or not heapcam's; `verify`: also a ring file of another recording, or under " +
		"a " +
		"wrong number"},
	{"7", "written by a newer heapcam"},
	{"8", "`verify` found a mismatch"},
	{"9", "`leaks --fail-on-leak` found a leak"},
	{"10", "no room: the disk is full, or `--max-incidents-size` is reached"},
	{"125", "`run`: heapcam itself failed"},
	{"126", "`run`: the command cannot be executed"},
	{"127", "`run`: the command was not found"},
	{"128+n", "`run`: the command was ended by signal n"},
}

// codeError carries its exit code. A silent one has been told already. A misused one is about the command line
// itself: help is near.
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

// obstacleCodes are the codes of what keeps a JVM from being recorded.
var obstacleCodes = map[jvms.Obstacle]int{
	jvms.Unrecordable: exitNoRecord, jvms.NoRing: exitNoRecord, jvms.Denied: exitDenied, jvms.Ended: exitNotFound,
	jvms.Already: exitUsage,
}

// exitCode is the one place where typed errors become codes. Packages know nothing of them.
func exitCode(err error) int {
	var (
		own      *codeError
		answer   *api.RemoteError
		noJVM    *jvms.NotFoundError
		manyJVMs *jvms.AmbiguousError
		packaged *svc.PackagedError
		place    *svc.PlaceError
	)
	switch {
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &answer): // of an agent, here or on another host
		return codeOf(answer.Kind)
	case jvms.ObstacleOf(err) != 0:
		return obstacleCodes[jvms.ObstacleOf(err)]
	case errors.As(err, &noJVM):
		if noJVM.Process {
			return exitNoRecord
		}
		return exitNotFound
	case errors.As(err, &manyJVMs):
		return exitUsage
	case tooNew(err):
		return exitTooNew
	case damaged(err):
		return exitDamaged
	case errors.Is(err, svc.ErrRights):
		return exitDenied
	case errors.Is(err, svc.ErrNotInstalled), errors.Is(err, svc.ErrUnsupported),
		errors.Is(err, collection.ErrNotThere):
		return exitNotFound
	case errors.As(err, &packaged), errors.As(err, &place), errors.Is(err, svc.ErrInstalled):
		return exitUsage
	case errors.Is(err, ringstore.ErrIncidentRoom), ringstore.DiskFull(err):
		return exitNoRoom
	case errors.Is(err, syscall.ENOTDIR): // a file was named where a folder is meant
		return exitUsage
	case errors.Is(err, attach.ErrNoProcess), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	case errors.Is(err, attach.ErrPermission), errors.Is(err, fs.ErrPermission):
		return exitDenied
	case errors.Is(err, attach.ErrNotJVM), errors.Is(err, attach.ErrDisabled), errors.Is(err, attach.ErrTimeout),
		errors.Is(err, attach.ErrReadOnly), errors.Is(err, probe.ErrNone):
		return exitNoRecord
	}
	return exitFailed
}

// tooNew says that a newer heapcam wrote what err is about.
func tooNew(err error) bool {
	var stream *trace.TooNewError
	var ring *shmring.TooNewError
	var store *ringstore.TooNewError
	return errors.As(err, &stream) || errors.As(err, &ring) || errors.As(err, &store)
}

// damaged says that a file is damaged, of another recording, or not heapcam's.
func damaged(err error) bool {
	var (
		corrupt  *trace.CorruptError
		noRing   *shmring.NotRingError
		violates *shmring.ViolationError
		store    *ringstore.DamageError
		foreign  *ringstore.ForeignError
	)
	return errors.As(err, &corrupt) || errors.Is(err, trace.ErrTorn) || errors.As(err, &noRing) ||
		errors.As(err, &violates) || errors.As(err, &store) || errors.As(err, &foreign) ||
		errors.Is(err, ringstore.ErrOtherRecording)
}

// newExitCodesTopic is no verb but a page of help.
func newExitCodesTopic() *cobra.Command {
	text := "Exit codes:\n"
	for _, e := range exitDocs {
		text += fmt.Sprintf("\n  %-6s %s", e.code, e.meaning)
	}
	return &cobra.Command{Use: "exit-codes", Short: "Exit codes of all verbs", Long: text +
		"\n\n`run` gives its command's status otherwise."}
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
