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
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/drag"
	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/analysis/whatif"
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
	exitUnclear   = 11
	exitRunFailed = 125
	exitNotExec   = 126
	exitNoCommand = 127
)

// exitDocs says what each exit code means. Man pages, `heapcam help exit-codes` and docs/reference/exit-codes.md are
// made from it.
var exitDocs = []struct{ code, meaning string }{
	{"0", "Success."},
	{"1", "The verb failed for a reason without a code of its own, such as a read error. `detach` and `record` also " +
		"end so if the JVM does not confirm that the probe has stopped."},
	{"2", "A flag or an argument is wrong. `attach` and `record` also end so if heapcam already records the JVM, and " +
		"`whatif` for sizes that it cannot predict."},
	{"3", "There is no such JVM, recording, file, collection or agent, or the service does not run. An agent gives " +
		"the same " +
		"answer for a recording of another user."},
	{"4", "You lack the right: `record` or `doctor` names a JVM of another user, you cannot write to the folder, " +
		"or you " +
		"may not ask the agent."},
	{"5", "heapcam cannot record this JVM. `heapcam doctor JVM` says why."},
	{"6", "A file or folder is damaged, or heapcam did not write it. A verb also ends so if it set aside a file of " +
		"another recording, and `verify` for one that was renamed or copied, too."},
	{"7", "A newer heapcam wrote the file."},
	{"8", "`verify` found a mismatch: the recording contradicts itself."},
	{"9", "`leaks --fail-on-leak` found a leak, or the heap was full. `--fail-on-suspect` found a suspect, too."},
	{"10", "There is no room: the disk is full, or all incidents together reach `--max-incidents-size`. `references` " +
		"also ends so if the listing does not fit below `--max-trace-size`, or if it needs more memory than the " +
		"JVM's cgroup or the system has left. `lifetimes` and `whatif` end so if they need more memory than is left."},
	{"11", "`leaks` with one of these flags cannot tell whether the program leaks: the recording is too short or " +
		"damaged, or lacks many samples. `lifetimes`, `drag` and `whatif` end so if the recording lacks what " +
		"they need: objects, collections, uses, or the Serial, Parallel or G1 collector."},
	{"125", "`run`: heapcam itself failed."},
	{"126", "`run`: the command is not executable."},
	{"127", "`run`: the command does not exist."},
	{"128+n", "`run`: signal n ended the command."},
}

// otherCodes ends each list of exit codes.
const otherCodes = "Otherwise `run` exits with the code of its command."

// codeError carries its exit code. A silent one has been printed already. After one that is about the command line
// itself, the program points to the help of the verb that was misused.
type codeError struct {
	code    int
	err     error
	silent  bool
	misused *cobra.Command
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

func withCode(code int, format string, args ...any) error {
	return &codeError{code: code, err: fmt.Errorf(format, args...)}
}

func usage(format string, args ...any) error { return withCode(exitUsage, format, args...) }

// misused marks an error of the command line for which the help of verb has the answer.
func misused(verb *cobra.Command, err error) error {
	if c, ok := err.(*codeError); ok && c.code == exitUsage {
		c.misused = verb
	}
	return err
}

// status ends the program with a code and prints nothing.
func status(code int) error {
	if code == 0 {
		return nil
	}
	return &codeError{code: code, err: fmt.Errorf("status %d", code), silent: true}
}

// silent says whether err has been printed already.
func silent(err error) bool {
	var c *codeError
	return errors.As(err, &c) && c.silent
}

// obstacleCodes are the exit codes for the reasons why heapcam cannot record a JVM.
var obstacleCodes = map[jvms.Obstacle]int{
	jvms.Unrecordable: exitNoRecord, jvms.NoRing: exitNoRecord, jvms.Denied: exitDenied, jvms.Ended: exitNotFound,
	jvms.Already: exitUsage,
}

// exitCode is the only place that maps typed errors to exit codes. No package knows exit codes.
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
	case unpredictable(err) != 0:
		return unpredictable(err)
	case errors.Is(err, ringstore.ErrIncidentRoom), errors.Is(err, ringstore.ErrNoRoom), ringstore.DiskFull(err),
		errors.Is(err, session.ErrNoMemory), errors.Is(err, lifetimes.ErrMemory):
		return exitNoRoom
	case errors.Is(err, syscall.ENOTDIR): // the user named a file instead of a folder
		return exitUsage
	case errors.Is(err, attach.ErrNoProcess), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	case errors.Is(err, attach.ErrPermission), errors.Is(err, fs.ErrPermission):
		return exitDenied
	case errors.Is(err, attach.ErrNotJVM), errors.Is(err, attach.ErrDisabled), errors.Is(err, attach.ErrLoading),
		errors.Is(err, attach.ErrTimeout), errors.Is(err, attach.ErrReadOnly), errors.Is(err, probe.ErrNone):
		return exitNoRecord
	}
	return exitFailed
}

// unpredictable gives the code of an error of whatif, lifetimes or drag, else 0.
func unpredictable(err error) int {
	var factor *whatif.FactorError
	var size *whatif.SizeError
	switch {
	case errors.As(err, &factor), errors.As(err, &size), errors.Is(err, whatif.ErrNoConfig),
		errors.Is(err, whatif.ErrG1):
		return exitUsage
	case errors.Is(err, lifetimes.ErrNoObjects), errors.Is(err, lifetimes.ErrNoCollections),
		errors.Is(err, drag.ErrNoUses),
		errors.Is(err, whatif.ErrCollector), errors.Is(err, whatif.ErrNoYoung):
		return exitUnclear
	case errors.Is(err, whatif.ErrImplausible):
		return exitDamaged
	}
	return 0
}

// tooNew says whether err is about a file of a newer heapcam.
func tooNew(err error) bool {
	var stream *trace.TooNewError
	var ring *shmring.TooNewError
	var store *ringstore.TooNewError
	return errors.As(err, &stream) || errors.As(err, &ring) || errors.As(err, &store)
}

// damaged says whether err is about a file that is damaged, of another recording, or not heapcam's.
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

// newExitCodesTopic is not a verb but a page of help.
func newExitCodesTopic() *cobra.Command {
	text := ""
	for _, e := range exitDocs {
		text += fmt.Sprintf("  %-6s %s\n", e.code, indented(e.meaning, 9))
	}
	return &cobra.Command{Use: "exit-codes", Short: "Exit codes of all verbs", Long: text + "\n" + otherCodes}
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
