package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/profiles"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/upload"
	"github.com/heapcam/heapcam/internal/ui"
)

// print prints an agent's answer, or what lies on the disk. closed: that there is no agent is known, or no matter.
func (o *statusOptions) print(r api.StatusReply, closed bool) error {
	if o.json {
		return ui.JSON(ui.Stdout, r)
	}
	if !r.Agent && !closed {
		ui.Fprintf(ui.Stderr, "heapcam: no agent runs%s\n", onDiskNow(r.JVMs))
	}
	spool := r.Spool != nil && (r.Spool.Error != "" || len(r.Spool.Left) > 0)
	if len(r.JVMs)+len(r.Others) == 0 && !spool {
		if d := closedTo(o.out); d != "" {
			ui.Fprintf(ui.Stderr, "heapcam: you may not read %s: root may\n", d)
		}
		if r.Agent {
			ui.Fprintf(ui.Stderr, "heapcam: the agent runs, and records no JVM\nheapcam: `heapcam attach JVM` has it "+
				"record one; `heapcam doctor` says which JVMs it can record\n")
		} else {
			ui.Fprintf(ui.Stderr, "heapcam: no recording in %s\nheapcam: start one with `heapcam run -- COMMAND` or "+
				"`heapcam record JVM`\n", strings.Join(outDirs(o.out), " or "))
		}
		if r.Upload == nil && r.Profiles == nil {
			return nil
		}
	}
	if len(r.JVMs) > 0 {
		o.recordings(r.JVMs)
	}
	if r.Self != nil {
		ui.Section(ui.Stdout, "Agent")
		ui.Paragraph(ui.Stdout, "", 2, selfLine(r.Self))
	}
	if r.Upload != nil {
		ui.Section(ui.Stdout, ui.Flowf("Uploads to %s", r.Upload.To))
		ui.Paragraph(ui.Stdout, "", 2, uploadLine(r.Upload))
		if r.Upload.Error != "" {
			ui.Fprintf(ui.Stdout, "  Uploads fail since %s: %s\n", ui.Time(r.Upload.Since), ui.Prose(r.Upload.Error))
		}
	}
	if r.Profiles != nil {
		ui.Section(ui.Stdout, ui.Flowf("Profiles to %s", r.Profiles.To))
		ui.Paragraph(ui.Stdout, "", 2, profilesLine(r.Profiles))
		if r.Profiles.Error != "" {
			ui.Fprintf(ui.Stdout, "  The last push failed: %s\n", ui.Prose(r.Profiles.Error))
		}
	}
	if spool {
		ui.Section(ui.Stdout, ui.Flowf("Not taken over from the spool folder %s", ui.Path(r.Spool.Dir)))
		if r.Spool.Error != "" {
			ui.Fprintf(ui.Stdout, "  the folder cannot be read: %s\n", r.Spool.Error)
		}
		for _, i := range r.Spool.Left {
			ui.Fprintf(ui.Stdout, "  %s (uid %d, %s): %s\n", i.Name, i.UID, ui.Bytes(i.Bytes), i.Reason)
		}
	}
	if len(r.Others) > 0 {
		ui.Section(ui.Stdout, "JVMs that are not recorded")
	}
	for _, j := range r.Others {
		ui.Fprintf(ui.Stdout, "  pid %d (%s): %s", j.PID, or(j.Name, "name unknown"), ui.Prose(j.Reason))
		if j.Remedy != "" {
			ui.Fprintf(ui.Stdout, "; %s", ui.Prose(j.Remedy))
		}
		ui.Fprintf(ui.Stdout, "\n")
	}
	if !o.watch {
		ui.Next(ui.Stdout, o.next(&r)...)
	}
	return nil
}

// recordings prints a line for each, and what an operator should know of them.
func (o *statusOptions) recordings(all []session.Status) {
	t := ui.NewColumns(0, "RECORDING", "STATE", ">GCS", ">LIVE", ">DISK", ">OVERHEAD", ">LOST", "SINCE")
	var about []ui.Text
	var rings uint64
	for _, s := range all {
		rings += s.RingBytes
		share := "-"
		if s.PauseNS > 0 && s.UpNS > 0 {
			share = ui.Part(s.ProbeNS+s.SampleNS+s.ReferencesNS, s.UpNS)
		}
		live := "-"
		if s.LiveBytes > 0 { // nothing is known before the first collection, nor of what lies on the disk alone
			live = ui.Bytes(s.LiveBytes)
		}
		lost := "?"
		if !s.DroppedUnknown {
			lost = strconv.FormatUint(s.Dropped.RingEpochs+s.Dropped.StoreEpochs, 10)
		}
		t.Row(s.ID, state(s.Phase), s.Collections, live, ui.Bytes(s.TraceBytes), share, lost, since(s.Since))
		if who := s.Resource.String(); who != "" {
			t.Under(2, ui.Sprintf("service: %s", who))
		}
		about = append(about, remarks(&s)...)
	}
	t.Write(ui.Stdout)
	ui.Fprintf(ui.Stdout, "\n")
	ui.Paragraph(ui.Stdout, "", 0, "GCS: recorded collections. LIVE: bytes of live objects after the last one. "+
		"DISK: size of the recording, reserved space included. OVERHEAD: what heapcam cost, sampling and reference "+
		"listings included, as a share of the time. LOST: collections that were not recorded (?: not known, see "+
		"`heapcam verify`). SINCE: the start of the recording, or the last change of one that has no agent; local "+
		"time.")
	if rings > 0 {
		twice := ui.Flow(" A JVM maps its ring twice, so tools show twice its size in the JVM's RSS. Its cgroup is " +
			"charged once.")
		if runtime.GOOS == "windows" { // it is mapped once there
			twice = ""
		}
		ui.Paragraph(ui.Stdout, "", 0, ui.Flowf("The shared rings take %s of memory.%s", ui.Flow(ui.Bytes(rings)),
			twice))
	}
	if len(about) > 0 {
		ui.Section(ui.Stdout, "Notes")
		for _, line := range about {
			ui.Beside(ui.Stdout, "  ", line)
		}
	}
}

// reasoned makes two sentences of "what is in force: why".
func reasoned(why string) string {
	what, reason, ok := strings.Cut(why, ": ")
	if !ok {
		return why
	}
	return what + ". Reason: " + reason
}

// inForce says which depth a recording has, with its sampling interval, and why.
func inForce(s *session.Status) string {
	what, reason, ok := strings.Cut(s.DepthWhy, ": ")
	if !ok || s.Interval == 0 || s.NoSites || !strings.HasPrefix(what, "depth ") ||
		strings.Contains(what, "sampling every") { // an older agent says it
		return reasoned(s.DepthWhy)
	}
	return what + ", sampling every " + ui.Bytes(s.Interval) + ". Reason: " + reason
}

// defaultDepth needs no word.
const defaultDepth = "survivors"

// state is a phase in words.
func state(p session.Phase) string {
	if p == session.ProbeStopped {
		return "probe stopped"
	}
	return string(p)
}

// since is the time of a moment of the last 24 hours, and the date of an older one.
func since(t time.Time) string {
	switch ago := time.Since(t); {
	case t.IsZero():
		return "-"
	case ago < 24*time.Hour:
		return t.Local().Format(time.TimeOnly)
	}
	return t.Local().Format(time.DateOnly)
}

// next gives the commands that lead on: for a recording that goes on, else for any.
func (o *statusOptions) next(r *api.StatusReply) (out []ui.Text) {
	if len(r.JVMs) > 0 {
		s := &r.JVMs[0]
		for i := range r.JVMs {
			if r.JVMs[i].Phase == session.Recording {
				s = &r.JVMs[i]
				break
			}
		}
		id, where := ui.ShellWord(s.ID), ui.Text("")
		closed := false
		switch {
		case o.remote.address != "":
			where = ui.Sprintf("--remote %s ", ui.ShellWord(o.remote.address))
		case o.out != "":
			where = ui.Sprintf("--out %s ", ui.ShellWord(o.out))
			out = append(out, ui.Sprintf("heapcam report %s", ui.ShellWord(s.Dir)))
		case !mayRead(s.Dir): // the agent may
			closed = true
		default:
			out = append(out, ui.Sprintf("heapcam report %s", id))
		}
		out = append(out, ui.Sprintf("heapcam pull %s%s --last 15m -o incident.heapcam", where, id))
		if closed {
			out = append(out, "heapcam report incident.heapcam")
		}
	}
	if len(r.Others) > 0 && o.remote.address == "" {
		out = append(out, ui.Sprintf("heapcam doctor %d", r.Others[0].PID))
	}
	return out
}

// onDiskNow introduces the recordings on disk, as the end of a line.
func onDiskNow(all []session.Status) string {
	if len(all) == 0 {
		return ""
	}
	n := 0
	for _, s := range all {
		if s.Phase == session.Recording {
			n++
		}
	}
	if n == 0 {
		return ". These recordings are on disk:"
	}
	return fmt.Sprintf(". These recordings are on disk, %d of them still being recorded:", n)
}

// selfLine says what the agent itself uses.
func selfLine(s *quota.Self) ui.Flow {
	line := ui.Flowf("It uses %s of one core", ui.Flow(ui.Share(s.CPU)))
	if s.MaxCPU > 0 {
		line += ui.Flowf(" (limit %s)", ui.Flow(ui.Share(s.MaxCPU)))
	}
	line += ui.Flowf(" and %s of memory", ui.Flow(ui.Bytes(s.Memory)))
	if s.MaxMemory > 0 {
		line += ui.Flowf(" (limit %s)", ui.Flow(ui.Bytes(s.MaxMemory)))
	}
	return line + "."
}

// remarks gives what an operator should know of a recording, a line each.
func remarks(s *session.Status) (out []ui.Text) {
	say := func(format string, args ...any) {
		out = append(out, ui.Sprintf("%s: %s", s.ID, ui.Sprintf(format, args...)))
	}
	switch {
	case s.Reason != "" && s.Phase == session.Paused:
		say("paused: %s", ui.Prose(s.Reason))
	case s.Reason != "":
		say("%s", ui.Prose(s.Reason))
	}
	if v := s.Verdict; v != nil && len(v.Leaks) > 0 {
		say("at %s: %s", ui.Time(v.Time), ui.Prose(v.Headline))
	}
	if s.Incident != "" {
		out := ""
		if s.Dir != "" {
			out = filepath.Dir(s.Dir)
		}
		say("an incident was kept automatically: `%s`", pullIncident(s.Incident, out))
	}
	if s.Spool {
		say("taken over from the spool folder: its pid is that of its own container or host")
	}
	if s.Missed > 0 {
		say("%s without events, pauses unknown (jcmd GC.class_histogram and GC.heap_dump)",
			ui.Plural(s.Missed, "collection"))
	}
	if s.NoSites {
		say("no allocation sites: another agent in this JVM uses allocation sampling")
	}
	switch {
	case s.Stuck():
		say("%s: nothing is written; what the shared ring cannot hold is lost", s.StoreError)
	case s.StoreError != "":
		say("writing to the disk failed: %s", s.StoreError)
	}
	if s.NeededTraceSize > 0 {
		say("no listing of the live objects fits into the recording: set --max-trace-size %s or more",
			ui.Bytes(s.NeededTraceSize))
	}
	if s.DiskFull {
		say("the disk is full: the recording continues within %s", ui.Bytes(s.TraceLimit))
	}
	if s.ForeignFiles > 0 {
		say("not read: %s of other recordings in its folder (`heapcam verify %s` names them)",
			ui.Plural(uint64(s.ForeignFiles), "file"), ui.ShellWord(s.Dir))
	}
	if s.Phase.Over() {
		return out
	}
	switch {
	case s.DepthWhy != "" && s.Depth != s.DepthAsked:
		say("depth %s was requested. In force: %s", s.DepthAsked, inForce(s))
	case s.Depth != "" && s.Depth != defaultDepth && s.DepthWhy != "":
		say("recorded at %s", reasoned(s.DepthWhy))
	case s.Depth != "" && s.Depth != defaultDepth:
		say("recorded at depth %s", s.Depth)
	}
	if s.RingOnDisk {
		say("its shared ring is on a disk: a collection may have to wait for that disk")
	}
	if s.Renew {
		say("it has the probe %s: restart this JVM to renew it", s.Probe)
	}
	if !s.GuaranteeMet && s.NeededTraceSize == 0 && !s.DiskFull {
		say("the recording is too small for this heap: raise --max-trace-size")
	}
	return out
}

// uploadLine says what the bucket has and what it lacks.
func uploadLine(u *upload.Status) ui.Flow {
	line := ui.Flowf("%s uploaded, %d pending", ui.Flow(ui.Plural(u.Uploaded, "incident")), u.Pending)
	if u.Dropped > 0 {
		line += ui.Flowf(", %d deleted before they were uploaded", u.Dropped)
	}
	return line + "."
}

// profilesLine says what the server has and what it lacks.
func profilesLine(p *profiles.Status) ui.Flow {
	line := ui.Flowf("%s pushed, %d pending", ui.Flow(ui.Plural(p.Pushed, "profile")), p.Pending)
	if p.Dropped > 0 {
		line += ui.Flowf(", %d lost", p.Dropped)
	}
	return line + "."
}
