package ringstore

import (
	"context"
	"io"
	"os"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/incident"
	"github.com/heapcam/heapcam/ringstore/pull"
	"github.com/heapcam/heapcam/ringstore/quota"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
	"github.com/heapcam/heapcam/trace"
)

// The names below are what the rest of heapcam knows of the packages under this one. They are here to stay: a caller
// imports ringstore alone, and the packages may be cut otherwise without it.

// The file system: package vfs.
type (
	FS       = vfs.FS
	RingFile = vfs.File
	Info     = vfs.Info
	FileID   = vfs.FileID
)

// OS is the system's file system.
var OS = vfs.OS

// ErrUnsupported says that a file system has no such operation.
var ErrUnsupported = vfs.ErrUnsupported

// Occupied is what the files below dir occupy, bytes: each once, whatever its names.
func Occupied(fs FS, dir string) int64 { return vfs.Below(fs, dir) }

// DiskFull says that err means: the disk is full, or the user's quota is used up.
func DiskFull(err error) bool { return incident.DiskFull(err) }

// Segments, their frames and their errors: package segment.
type (
	File        = segment.File
	Frame       = segment.Frame
	FrameInfo   = segment.FrameInfo
	FrameData   = segment.FrameData
	Window      = segment.Window
	DamageError = segment.DamageError
	TooNewError = segment.TooNewError
)

// Flags of a frame, modes of compression, and the largest payload.
const (
	FlagHead    = segment.FlagHead
	FlagIndex   = segment.FlagIndex
	FlagListing = segment.FlagListing
	// FlagRamp marks the frame of a slice; with FlagListing of the first, with FlagComplete of the last.
	FlagRamp     = segment.FlagRamp
	FlagComplete = segment.FlagComplete
	FlagDefs     = segment.FlagDefs
	FlagMarked   = segment.FlagMarked
	FlagSummary  = segment.FlagSummary
	// FlagReferences marks the frame of parts of reference listings, with FlagListed of the first or last one.
	// FlagApart says that both were set where they apply.
	FlagReferences = segment.FlagReferences
	FlagListed     = segment.FlagListed
	FlagApart      = segment.FlagApart
	MaxFrame       = segment.MaxFrame

	None     = segment.None
	Partial  = segment.Partial
	Full     = segment.Full
	Adaptive = segment.Adaptive
)

// Errors of segments, of the quota and of the other parts.
var (
	ErrTorn         = segment.ErrTorn
	ErrCorrupt      = segment.ErrCorrupt
	ErrNoRoom       = quota.ErrNoRoom
	ErrInUse        = folder.ErrInUse
	ErrTooOften     = incident.ErrTooOften
	ErrIncidentRoom = incident.ErrRoom
	ErrImportRoom   = pull.ErrImportRoom
	ErrNoTime       = pull.ErrNoTime
)

// TooSmallError says that a sync point does not fit into the ring: package quota.
type TooSmallError = quota.TooSmallError

// OpenFile opens a single ring file. Errors: *DamageError, *TooNewError, I/O errors.
func OpenFile(path string) (*File, error) { return segment.Open(path) }

// OpenFileIn is OpenFile in any file system.
func OpenFileIn(fs FS, path string) (*File, error) { return segment.OpenIn(fs, path) }

// Ring folders, and whose recording they hold: package folder.
type (
	Identity       = folder.Identity
	Folder         = folder.Folder
	ForeignError   = folder.ForeignError
	MisplacedError = folder.MisplacedError
)

// RecordingName is the file of a ring folder that says whose it is.
const RecordingName = folder.RecordingName

// ReadResource gives the attributes of OpenTelemetry in recording.json of a folder; nil: none.
func ReadResource(fs FS, dir string) trace.Resource { return folder.ReadResource(fs, dir) }

// ReadCounters gives what the recorder of a folder has counted (Store.KeepCounters); nil: nothing.
func ReadCounters(fs FS, dir string) []byte { return folder.ReadCounters(fs, dir) }

// LookInto says which files of a ring folder are the recording's and which are others'. Errors: I/O errors.
func LookInto(dir string) (Folder, error) { return folder.LookInto(dir) }

// OwnerOf gives the user whose recording the folder dir holds.
func OwnerOf(dir string) (int, error) { return folder.OwnerOf(dir) }

// RemoveRing removes the ring of a recorder that has ended. Errors: ErrInUse, *ForeignError, I/O errors.
func RemoveRing(dir string) error { return folder.Remove(dir) }

// CheckDocument says whether b, read from path, is the document that was written: a *DamageError if not.
func CheckDocument(path string, b []byte) error { return folder.CheckDocument(path, b) }

// Recordings as they are read, and their verdicts: package recording.
type (
	Recording    = recording.Recording
	Manifest     = recording.Manifest
	ManifestFile = recording.ManifestFile
	ForeignFile  = recording.ForeignFile
	Verdict      = recording.Verdict
	State        = recording.State
)

// States of a file.
const (
	Sound     = recording.Sound
	Torn      = recording.Torn
	Corrupt   = recording.Corrupt
	TooNew    = recording.TooNew
	Foreign   = recording.Foreign
	Misplaced = recording.Misplaced
	Missing   = recording.Missing
)

// ManifestName is the last member of a container: its table of contents.
const ManifestName = recording.ManifestName

// OpenRecording opens a container, a ring folder or a single ring file.
func OpenRecording(path string) (*Recording, error) { return recording.Open(path) }

// OpenContainer opens a container that is not a file of this system.
func OpenContainer(name string, at io.ReaderAt, size int64) (*Recording, error) {
	return recording.OpenContainer(name, at, size)
}

// CheckPath checks a container, a ring folder or a single ring file.
func CheckPath(path string) ([]Verdict, error) { return recording.CheckPath(path) }

// Worst gives the worst state.
func Worst(vs []Verdict) State { return recording.Worst(vs) }

// LeftOut says whether err, one of a recording's problems, means that a file is not read.
func LeftOut(err error) bool { return recording.LeftOut(err) }

// Windows that were kept: package incident.
type (
	Incidents = incident.Incidents
	Incident  = incident.Incident
	Cause     = incident.Cause
	Listed    = incident.Listed
)

// Causes of incidents.
const (
	CauseAsked     = incident.Asked
	CauseStorm     = incident.Storm
	CauseExhausted = incident.Exhausted
	CauseUnended   = incident.Unended
)

// Containers, written and read back: package pull.
type (
	PullOptions = pull.Options
	Part        = pull.Part
)

// Pull writes the newest part of the ring folder dir to w as one container.
func Pull(ctx context.Context, dir string, w io.Writer, opt PullOptions) (*Manifest, error) {
	return pull.Pull(ctx, dir, w, opt)
}

// ReadPart reads the whole members of a container that was cut off.
func ReadPart(f *os.File) (*Part, error) { return pull.ReadPart(f) }

// Salvage writes the sound frames of all that path holds to w as a container.
func Salvage(ctx context.Context, path string, w io.Writer) (*Manifest, []Verdict, error) {
	return pull.Salvage(ctx, path, w)
}

// Import copies a recording into the new ring folder dir, as one of the user uid.
func Import(ctx context.Context, files []*os.File, dir string, uid int, most int64) (name string, err error) {
	return pull.Import(ctx, files, dir, uid, most)
}
