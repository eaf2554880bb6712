package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/heap/reflisting"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// incidentsIn gives the incidents of a folder for recordings.
func incidentsIn(out string, max int64) *ringstore.Incidents {
	return &ringstore.Incidents{Dir: filepath.Join(out, agent.IncidentsName), Max: max, Every: agent.IncidentEvery}
}

func newFreezeCmd() *cobra.Command {
	var out, reason, socket string
	asJSON, references := false, false
	most := defaultReferencePause
	max := ui.Size(agent.DefaultIncidents)
	c := &cobra.Command{
		Use:   "freeze [JVM]",
		Short: "Keep what a recording contains now as an incident",
		Long: `Use it when something is wrong now and the ring must not overwrite the data.

The verb keeps the closed files of the ring as hard links, and a copy of the file that is being written. The recording
continues. All incidents together never exceed --max-incidents-size; to make room, heapcam deletes the oldest
incidents that it created automatically. On a full disk it keeps only what needs no copy, and says what is missing.

With --references the agent first stops the JVM once to record what holds its objects, as ` + "`heapcam references`" + `
does. If that is not possible, the incident is made without, and says why.`,
		Example: `  heapcam freeze shop --reason "slow since the deployment"
  heapcam freeze shop --references
  heapcam incidents`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("freeze takes at most one JVM, but got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			recs, err := allRecordings(out)
			if err != nil {
				return err
			}
			dir, err := recordingAmong(recs, out, args)
			if err != nil {
				return orDenied(err, out, args...)
			}
			n := incidentsIn(filepath.Dir(dir), int64(max))
			if references {
				n.Listed = listFor(c.Context(), socket, dir, most)
			}
			i, err := n.Freeze(dir, ringstore.CauseAsked, reason)
			switch {
			case errors.Is(err, ringstore.ErrIncidentRoom):
				return fmt.Errorf("%w of %s: delete incidents (`heapcam incidents delete ID`)", err, &max)
			case ringstore.DiskFull(err):
				return withCode(exitNoRoom, "the disk of %s is full%s: nothing was kept, and %s is unchanged. "+
					"Free some space (`heapcam incidents` lists what can be deleted) and run the same command "+
					"again (%w)", n.Dir, freeOn(dir), filepath.Base(dir), err)
			case err != nil:
				return err
			case asJSON:
				if err := ui.JSON(c.OutOrStdout(), i); err != nil || !i.Full {
					return err
				}
				return status(exitNoRoom)
			}
			printFrozen(c.OutOrStdout(), &i)
			if i.Full {
				return withCode(exitNoRoom, "the disk of %s is full%s: the closed files of %s are kept, the newest "+
					"one could not be copied. Free some space and run the same command again",
					n.Dir, freeOn(dir), i.JVM)
			}
			return nil
		},
	}
	f := c.Flags()
	addOut(c, &out)
	addSocket(c, &socket)
	f.BoolVar(&references, "references", false, "Have the agent record what holds the objects first.")
	f.DurationVar(&most, "max-reference-pause", most, "Longest time that --references may stop the JVM.")
	f.StringVar(&reason, "reason", "by hand", "Why you keep it; the incident records it. Default \"by hand\".")
	f.Var(&max, "max-incidents-size", "Largest size of all incidents together. Default "+
		config.Lookup("max_incidents_size").Default+".")
	f.BoolVar(&asJSON, "json", false, "Print JSON (heapcam.incident/1).")
	exitsWith(c, "10", "The disk is full, or the incident does not fit into --max-incidents-size.")
	return c
}

// printFrozen says what an incident that was just made has, and what it lacks.
func printFrozen(to io.Writer, i *ringstore.Incident) {
	ui.Fprintf(to, "%s\n", i.ID)
	ui.Fprintf(ui.Stderr, "heapcam: kept %s of %s in %s, collections %d to %d\n", ui.Bytes(i.Bytes), i.JVM,
		ui.Plural(uint64(i.Files), "file"), i.FirstGC, i.LastGC)
	if who := i.Resource.String(); who != "" {
		ui.Fprintf(ui.Stderr, "heapcam: service %s\n", who)
	}
	switch l := i.References; {
	case l != nil && l.Why != "":
		ui.Fprintf(ui.Stderr, "heapcam: no references were recorded: %s\n", l.Why)
	case l != nil:
		ui.Fprintf(ui.Stderr, "heapcam: the incident has the references of %s after collection %d\n",
			ui.Plural(l.Objects, "object"), l.GC)
	}
	for _, f := range i.Foreign {
		ui.Fprintf(ui.Stderr, "heapcam: left out: %s is of another recording\n", f)
	}
	for _, l := range i.Left {
		ui.Fprintf(ui.Stderr, "heapcam: left out: %s\n", l)
	}
}

// listFor has the agent take a reference listing of the JVM whose ring folder is dir, and says what became of it.
func listFor(ctx context.Context, socket, dir string, most time.Duration) *ringstore.Listed {
	cl, err := dialAgent(socket)
	if err != nil {
		return &ringstore.Listed{Why: err.Error()}
	}
	st, err := cl.Status(ctx)
	if err != nil {
		return &ringstore.Listed{Why: err.Error()}
	}
	for _, s := range st.JVMs {
		if filepath.Base(s.Dir) != filepath.Base(dir) || s.Phase.Over() {
			continue
		}
		r, err := askReferences(ctx, cl, s.ID, most)
		if err != nil {
			return &ringstore.Listed{Why: err.Error()}
		}
		return &ringstore.Listed{GC: r.GC, Objects: r.Objects}
	}
	return &ringstore.Listed{Why: "the agent does not record this JVM now"}
}

// printIncidents lists the incidents below out.
func printIncidents(to io.Writer, out string, asJSON bool) error {
	all, err := listIncidents(out)
	if err != nil {
		return err
	}
	if asJSON {
		return ui.JSON(to, incidentsReply{ui.NewEnvelope("incidents", 1), all})
	}
	if d := closedTo(out); len(all) == 0 && d != "" {
		return withCode(exitDenied, "you may not read %s: run this command as root", d)
	}
	if len(all) == 0 {
		ui.Fprintf(ui.Stderr, "heapcam: there are no incidents in %s\n", strings.Join(outDirs(out), " or "))
		return nil
	}
	w := ui.NewTable(to)
	ui.Fprintf(w, "INCIDENT\tSERVICE\tKEPT AT\tBY\tSIZE\tCOLLECTIONS\tREASON\n")
	for _, i := range all {
		by := "a user"
		if i.Auto {
			by = "the agent"
		}
		ui.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d to %d\t%s\n", i.ID,
			or(i.Resource.String(), "-"), ui.Time(i.Created), by,
			ui.Bytes(i.Bytes), i.FirstGC, i.LastGC, i.Reason)
	}
	return w.Flush()
}

func newIncidentsCmd() *cobra.Command {
	var out string
	asJSON := false
	c := &cobra.Command{
		Use:   "incidents [BUCKET]",
		Short: "List, show and delete incidents",
		Long: `An incident is a part of a recording that the ring does not overwrite. The recorder creates one when a
JVM is killed or crashes, when it throws an OutOfMemoryError, or when full collections take more than 30 s of a minute.
` + "`heapcam freeze`" + ` creates one at any time. An incident's folder is a recording: every reading verb opens it.`,
		Example: `  heapcam incidents
  heapcam incidents show shop-4711
  heapcam pull --incident shop-4711 -o incident.heapcam
  heapcam incidents s3://incidents/shop`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && bucket.Is(args[0]) {
				return nil
			}
			return noArgs(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return listBucket(c.Context(), c.OutOrStdout(), args[0], asJSON)
			}
			return printIncidents(c.OutOrStdout(), out, asJSON)
		},
	}
	addOut(c, &out)
	c.Flags().BoolVar(&asJSON, "json", false, "Print JSON (heapcam.incidents/1; of a bucket heapcam.bucket/1).")
	showJSON := false
	show := &cobra.Command{
		Use: "show ID", Short: "Show one incident, and where it is",
		Long:    "ID is the beginning of an incident's id; `heapcam incidents` lists them.",
		Example: "  heapcam incidents show shop-4711",
		Args:    exactly(1, "one ID, or its beginning"),
		RunE: func(c *cobra.Command, args []string) error {
			n, i, err := findIncident(out, args[0])
			if err != nil {
				return err
			}
			if !showJSON {
				return showIncident(c.OutOrStdout(), i, n.Path(i.ID))
			}
			return ui.JSON(c.OutOrStdout(), incidentReply{i, n.Path(i.ID), verdictOn(n.Path(i.ID))})
		},
	}
	show.Flags().BoolVar(&showJSON, "json", false, "Print JSON (heapcam.incident/1).")
	addOut(show, &out)
	remove := &cobra.Command{
		Use: "delete ID", Short: "Delete one incident",
		Long:    "ID is the beginning of an incident's id; `heapcam incidents` lists them. Nobody can undo this.",
		Example: "  heapcam incidents delete shop-4711",
		Args:    exactly(1, "one ID, or its beginning"),
		RunE: func(c *cobra.Command, args []string) error {
			n, i, err := findIncident(out, args[0])
			if err != nil {
				return err
			}
			if err := n.Delete(i.ID); err != nil {
				return err
			}
			ui.Fprintf(ui.Stderr, "heapcam: deleted incident %s (%s)\n", i.ID, ui.Bytes(i.Bytes))
			return nil
		},
	}
	addOut(remove, &out)
	c.AddCommand(show, remove)
	return c
}

// freeOn gives the free space of the file system of dir, as a part of a sentence.
func freeOn(dir string) ui.Text {
	n, err := ringstore.OS.Free(dir)
	if err != nil || n < 0 {
		return ""
	}
	return ui.Text(fmt.Sprintf(" (%s free)", ui.Bytes(n)))
}

// verdictOn is the headline of `heapcam report` on an incident.
func verdictOn(dir string) ui.Flow {
	rep, err := reportOn(io.Discard, dir)
	if err != nil {
		return ui.Flowf("not known: %v", err)
	}
	return rep.FirstLook
}

// newestListing says which reference listing of a recording is the newest, as a part of a sentence.
func newestListing(dir string) ui.Text {
	rec, err := openReading(dir)
	if err != nil {
		return "the recording cannot be read"
	}
	defer rec.Close()
	src := newReferenceHeads(rec.Files...)
	defer src.Close()
	all, err := reflisting.Find(src)
	if err != nil {
		return "the recording cannot be read"
	}
	a, err := reflisting.Choose(all, math.MaxUint64)
	if err != nil {
		return "there is no earlier one"
	}
	return ui.Sprintf("the newest is after collection %d", a.GC)
}

func showIncident(to io.Writer, i ringstore.Incident, dir string) error {
	w := ui.NewTable(to)
	by := "by a user"
	if i.Auto {
		by = "by the agent"
	}
	ui.Fprintf(w, "incident\t%s\n", i.ID)
	ui.Fprintf(w, "recording\t%s\n", i.JVM)
	if who := i.Resource.String(); who != "" {
		ui.Fprintf(w, "service\t%s\n", who)
	}
	ui.Fprintf(w, "kept at\t%s, %s\n", ui.Time(i.Created), by)
	ui.Fprintf(w, "reason\t%s\n", i.Reason)
	if f := i.Follows; f != nil {
		ui.Fprintf(w, "follows\t%s (%s)\n", f.ID, ui.Prose(f.Reason))
	}
	for _, id := range i.Replaces {
		ui.Fprintf(w, "replaces\t%s (the same event)\n", id)
	}
	ui.Fprintf(w, "collections\t%d to %d\n", i.FirstGC, i.LastGC)
	ui.Fprintf(w, "size\t%s in %s\n", ui.Bytes(i.Bytes), ui.Plural(uint64(i.Files), "file"))
	for _, l := range i.Left {
		ui.Fprintf(w, "left out\t%s\n", l)
	}
	if x := i.References; x != nil && x.Why == "" {
		ui.Fprintf(w, "references\tafter collection %d, %s\n", x.GC, ui.Plural(x.Objects, "object"))
	} else if x != nil {
		ui.Fprintf(w, "references\tnone at this moment: %s; %s\n", ui.Prose(x.Why), newestListing(dir))
	}
	ui.Fprintf(w, "folder\t%s\n", dir)
	ui.Fprintf(w, "verdict\t%s\n", ui.Text(verdictOn(dir)))
	ui.Fprintf(w, "read it\theapcam report %s\n", ui.ShellWord(dir))
	ui.Fprintf(w, "copy it\t%s\n", pullIncident(i.ID, filepath.Dir(filepath.Dir(dir))))
	return w.Flush()
}

// outFlag repeats a flag --out in a command.
func outFlag(out string) ui.Text {
	if out == "" {
		return ""
	}
	return ui.Sprintf(" --out %s", ui.ShellWord(out))
}

// pullIncident is the command that copies an incident in a folder for recordings. It names that folder where pull would
// not search it.
func pullIncident(id, out string) ui.Text {
	at, err := os.Stat(out)
	usual := func(dir string) bool {
		own, derr := os.Stat(dir)
		return err == nil && derr == nil && os.SameFile(at, own)
	}
	if out == "" || slices.ContainsFunc(outDirs(""), usual) {
		return ui.Sprintf("heapcam pull --incident %s -o FILE", ui.ShellWord(id))
	}
	if st, _ := agentStatus(); usual(st.Out) {
		out = ""
	}
	return ui.Sprintf("heapcam pull%s --incident %s -o FILE", outFlag(out), ui.ShellWord(id))
}

// incidentDirs gives the folders for recordings to search for incidents. Without out this includes the agent's own.
func incidentDirs(out string) []string {
	dirs := outDirs(out)
	if out != "" {
		return dirs
	}
	st, _ := agentStatus()
	own, err := os.Stat(st.Out)
	if err != nil || !filepath.IsAbs(st.Out) {
		return dirs
	}
	for _, d := range dirs {
		if same, err := os.Stat(d); err == nil && os.SameFile(own, same) {
			return dirs
		}
	}
	return append(dirs, st.Out)
}

func listIncidents(out string) ([]ringstore.Incident, error) {
	all := []ringstore.Incident{}
	for _, d := range incidentDirs(out) {
		is, err := incidentsIn(d, 0).List()
		if err != nil && !errors.Is(err, os.ErrPermission) {
			return nil, err
		}
		all = append(all, is...)
	}
	return all, nil
}

func findIncident(out, id string) (*ringstore.Incidents, ringstore.Incident, error) {
	for _, d := range incidentDirs(out) {
		n := incidentsIn(d, 0)
		i, err := n.Find(id)
		if err == nil {
			return n, i, nil
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return nil, i, usage("%v", err)
		}
	}
	if d := closedTo(out); d != "" { // pull then asks the agent
		return nil, ringstore.Incident{}, withCode(exitDenied, "you may not read %s: copy the incident with "+
			"`heapcam pull --incident %s -o FILE` and read FILE, or run this command as root", d, ui.ShellWord(id))
	}
	return nil, ringstore.Incident{}, withCode(exitNotFound, "there is no incident %q in %s: `heapcam incidents%s` "+
		"lists them", id, strings.Join(outDirs(out), " or "), outFlag(out))
}
