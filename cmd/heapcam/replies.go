package main

import (
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/svc"
)

// The JSON documents of verbs whose content no other package defines. docs/reference/json.md is generated from them:
// a field's comment is its meaning.

type attachReply struct {
	ui.Envelope
	api.AttachReply
}

// askReply is what detach, pause and resume print.
type askReply struct {
	ui.Envelope
	ID    string `json:"id,omitempty"` // The recording that the verb applied to; absent with --all.
	Asked int    `json:"asked"`        // Number of recordings that the verb applied to.
}

type incidentsReply struct {
	ui.Envelope
	Incidents []ringstore.Incident `json:"incidents"` // All incidents, of each folder for recordings.
}

type incidentReply struct {
	ringstore.Incident
	Dir string `json:"dir"` // Folder of the incident: a recording that every reading verb opens.
	// The first sentence of `heapcam report` on it.
	Verdict ui.Flow `json:"verdict"`
}

type classifiersReply struct {
	ui.Envelope
	Classifiers []classify.Doc `json:"classifiers"` // Built-in classifiers first, then your own.
}

type doctorReply struct {
	ui.Envelope
	Probe bool        `json:"probe"` // The probe is built into this binary.
	JVMs  []doctorRow `json:"jvms"`  // The JVMs that this user can see.
}

type configReply struct {
	ui.Envelope
	Settings []setting `json:"settings"` // Every setting, with its value in force.
	Rules    int       `json:"rules"`    // Number of rules in the file.
}

// supportConfig is config.json in a support bundle.
type supportConfig struct {
	ui.Envelope
	Settings []setting     `json:"settings"`
	Rules    []config.Rule `json:"rules"`
}

type serviceReply struct {
	ui.Envelope
	svc.State
}

type versionReply struct {
	ui.Envelope
	Version string `json:"version"`          // Version of heapcam.
	Commit  string `json:"commit,omitempty"` // Commit that the binary is built from.
	Format  int    `json:"format"`           // Newest version of the stream format that this binary reads.
	ABI     int    `json:"ring_abi"`         // Version of the shared ring's layout.
	Go      string `json:"go"`               // Version of Go that built the binary.
	OS      string `json:"os"`               // Operating system that the binary is for.
	Arch    string `json:"arch"`             // Processor that the binary is for.
	Probe   string `json:"probe,omitempty"`  // Checksum of the built-in probe; absent if there is none.
}

// referencesReply is what references prints.
type referencesReply struct {
	ui.Envelope
	ID  string `json:"id"`
	Dir string `json:"dir"`
	session.References
}
