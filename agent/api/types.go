package api

import (
	"errors"
	"io/fs"

	"github.com/heapcam/heapcam/agent/profiles"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
	"github.com/heapcam/heapcam/agent/upload"
)

// StatusReply is the answer of GET /v1/status and what `status --json` prints.
type StatusReply struct {
	Schema string           `json:"schema"` // heapcam.status/1
	Agent  bool             `json:"agent"`  // an agent answered
	Out    string           `json:"out"`
	JVMs   []session.Status `json:"jvms"`
	Others []Other          `json:"others,omitempty"` // JVMs that were found and are not recorded
	Spool  *spool.Status    `json:"spool,omitempty"`  // nil: there is no spool folder
	Self   *quota.Self      `json:"self,omitempty"`   // nil: the caller may not see it, or the agent is older
	Upload *upload.Status   `json:"upload,omitempty"` // nil: nothing is uploaded, or the caller may not see it
	// Profiles counts profiles that are pushed; nil: none are, or the caller may not see it.
	Profiles *profiles.Status `json:"profiles,omitempty"`
}

// Other is a JVM that is not recorded, and why.
type Other struct {
	ID      string `json:"id"` // of package jvms
	PID     int    `json:"pid"`
	UID     int    `json:"uid"`
	Name    string `json:"name"`
	Ignored bool   `json:"ignored,omitempty"` // a rule says so
	Why     string `json:"why"`               // one word of a small set, for programs
	Reason  string `json:"reason"`
	Remedy  string `json:"remedy,omitempty"`
}

// StatusSchema names the shape of StatusReply.
const StatusSchema = "heapcam.status/1"

// AttachRequest asks to load the probe into a running JVM.
type AttachRequest struct {
	JVM     string `json:"jvm"`               // pid, beginning of an id, or name
	Options string `json:"options,omitempty"` // of the probe, without dir=
}

// AttachReply says which JVM was meant; it is being recorded.
type AttachReply struct {
	ID   string `json:"id"` // of Status
	PID  int    `json:"pid"`
	Name string `json:"name"`
	Dir  string `json:"dir"`
}

// DetachRequest names the session that a verb is about.
type DetachRequest struct {
	ID  string `json:"id,omitempty"`  // of Status
	All bool   `json:"all,omitempty"` // all, instead of one
}

// DetachReply says how many sessions were asked.
type DetachReply struct {
	Asked int `json:"asked"`
}

// ReferencesRequest asks for a reference listing of the session whose ID is ID.
type ReferencesRequest struct {
	ID   string `json:"id"`             // of Status
	Most int64  `json:"most,omitempty"` // ns that the JVM may be stopped; 0: the probe's default
}

// ErrorReply is the answer to a request that failed.
type ErrorReply struct {
	Error string `json:"error"`
	Kind  Kind   `json:"kind"`
}

// Kind says what kind of error it is. The set is closed; a client takes an unknown kind for Failed.
type Kind string

// Kinds.
const (
	Failed      Kind = "failed"       // none of the others
	BadRequest  Kind = "bad_request"  // the request itself is wrong
	NotFound    Kind = "not_found"    // no such JVM or recording, or none that the caller may know of
	Denied      Kind = "denied"       // not permitted
	NoRecording Kind = "no_recording" // this JVM cannot be recorded
	Damaged     Kind = "damaged"      // a file is damaged, or not heapcam's
	TooNew      Kind = "too_new"      // a file was written by a newer heapcam
	NoRoom      Kind = "no_room"      // the disk is full, or a limit is reached
)

// KindOf returns the kind of an error of the standard library's kinds; Failed for all others.
func KindOf(err error) Kind {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrPermission):
		return Denied
	}
	return Failed
}
