package incident

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
	"github.com/heapcam/heapcam/trace"
)

// Incidents is the folder that holds incidents.
//
// Owner: the recorder, or a command. Lifetime: there is nothing to open or close; set the fields before the first call.
// Concurrency: one goroutine for Freeze, Delete and Clean; List, Find and Size at any time. Another process may work on
// the folder: a Freeze that is under way there is not disturbed, but the two may exceed Max together.
// Errors: ErrTooOften, ErrRoom, os.ErrNotExist, and those of the system (DiskFull).
type Incidents struct {
	Dir string
	// Max bounds what they occupy, bytes.
	Max int64
	// Every is how long after an automatic incident of a recording no other one is made of it, but for Cause.
	Every time.Duration
	// Listed is what became of the reference listing that the next incident asked for; nil: it asked for none.
	Listed *Listed
	// Ended says that the JVM of the next incident has ended.
	Ended bool
	// FS is where Dir and the rings are; nil: the system's. Now is the clock; nil: the system's.
	FS  vfs.FS
	Now func() time.Time
}

// Listed is what became of the reference listing that an incident asked for.
type Listed struct {
	GC      uint64 `json:"gc,omitempty"`      // the newest collection when the JVM was stopped for it
	Objects uint64 `json:"objects,omitempty"` // in it; 0: there is none
	Why     string `json:"none,omitempty"`    // why there is none
}

// Cause is what had an incident kept. The reason, a text, says more, to people.
type Cause string

// The causes of incidents.
const (
	Asked     Cause = "asked"     // somebody asked for it
	Storm     Cause = "storm"     // a GC storm began
	Exhausted Cause = "exhausted" // an allocation failed
	Unended   Cause = "unended"   // the JVM ended without an end marker
)

// after tells whether an automatic incident is made although there has been another for the cause before, not long ago.
// A storm comes before most exhaustions, and an end comes once.
func (c Cause) after(before Cause) bool {
	return c == Asked || c == Unended || c == Exhausted && before != Exhausted
}

// Followed names the incident before another one.
type Followed struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// together is how long after an incident the next one of the recording follows it. A JVM that ends within sameEvent of
// one dies of it.
const (
	together  = 5 * time.Minute
	sameEvent = time.Minute
)

// Incident is a window of a recording that was kept.
type Incident struct {
	Schema  string    `json:"schema"` // heapcam.incident/1
	ID      string    `json:"id"`
	JVM     string    `json:"jvm"` // name of the ring folder
	Session string    `json:"session"`
	Reason  string    `json:"reason"`
	Cause   Cause     `json:"cause,omitempty"`
	Auto    bool      `json:"auto"`            // not asked for by anybody
	Ended   bool      `json:"ended,omitempty"` // the JVM had ended
	Created time.Time `json:"created"`
	FirstGC uint64    `json:"first_gc"`
	LastGC  uint64    `json:"last_gc"`
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`               // of the files
	Left    []string  `json:"left_out,omitempty"`  // files of the window that did not fit or that the ring had evicted
	Full    bool      `json:"disk_full,omitempty"` // the open file is left out since the disk has no room for a copy
	Foreign []string  `json:"foreign,omitempty"`   // files of other recordings, which lie in the ring's folder still
	Names   []string  `json:"ring_files,omitempty"`
	// Follows is the newest incident of the recording that was made by itself not long before. One trouble may make
	// several: a storm, an allocation that failed, and the end of the JVM.
	Follows *Followed `json:"follows,omitempty"`
	// Replaces are the incidents of the same event that were deleted because this one has all that they had.
	Replaces []string `json:"replaces,omitempty"`
	// References is the reference listing that was taken for it; absent: none was asked for.
	References *Listed `json:"references,omitempty"`
	// Resource says whose JVM it was, as recording.json does.
	Resource trace.Resource `json:"resource,omitempty"`
	Damaged  string         `json:"damaged,omitempty"` // why incident.json cannot be read: only the ID is known
}

var (
	// ErrTooOften says that an automatic incident of this recording was made not long ago.
	ErrTooOften = errors.New("an incident of this recording was frozen not long ago")
	// ErrRoom says that not even the newest file of the window fits below max_incidents_size.
	ErrRoom = errors.New("no room below max_incidents_size")

	errDiskFull = errors.New("no space left on the disk")
)

const (
	idTime     = "20060102T150405Z" // ends an ID; a number may follow
	cleanAfter = time.Hour
)

// DiskFull says that err means: the disk is full, or the user's quota is used up.
func DiskFull(err error) bool { return errors.Is(err, errDiskFull) || vfs.NoSpace(err) }

// begunAt is when an incident was begun, by its ID.
func begunAt(id string) time.Time {
	parts := strings.Split(id, "-")
	for i := len(parts) - 1; i >= 0; i-- {
		if t, err := time.Parse(idTime, parts[i]); err == nil {
			return t
		}
	}
	return time.Time{}
}

func (n *Incidents) fill() {
	if n.FS == nil {
		n.FS = vfs.OS
	}
	if n.Now == nil {
		n.Now = time.Now
	}
}

// List gives the incidents, oldest first.
func (n *Incidents) List() ([]Incident, error) {
	n.fill()
	es, err := n.FS.ReadDir(n.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Incident
	for _, e := range es {
		if !e.Dir {
			continue
		}
		if i, err := n.read(e.Name); err == nil {
			out = append(out, i)
		}
	}
	sort.SliceStable(out, func(a, b int) bool { return out[a].Created.Before(out[b].Created) })
	return out, nil
}

// Of gives the incident that dir is the folder of; not ok: it is that of no incident.
func Of(fs vfs.FS, dir string) (i Incident, ok bool) {
	n := Incidents{FS: fs, Dir: filepath.Dir(dir)}
	i, err := n.read(filepath.Base(dir))
	return i, err == nil
}

func (n *Incidents) read(id string) (Incident, error) {
	var i Incident
	f0 := filepath.Join(n.Dir, id, folder.IncidentName)
	f, err := n.FS.OpenRead(f0)
	if err != nil {
		return i, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	if err != nil {
		return i, err
	}
	if err = folder.CheckKind(f0, b, "incident"); err == nil {
		err = json.Unmarshal(b, &i)
	}
	if err != nil { // it is there: nobody may take it for none, or for one that may go
		i = Incident{Created: begunAt(id), Reason: "unknown: " + err.Error(), Damaged: err.Error()}
	}
	i.ID, i.Resource = id, i.Resource.Clean()
	return i, nil
}

// Find gives the incident whose ID is id or begins with it. Errors: os.ErrNotExist; others if it is not the only one.
func (n *Incidents) Find(id string) (Incident, error) {
	all, err := n.List()
	if err != nil {
		return Incident{}, err
	}
	var got []Incident
	for _, i := range all {
		if i.ID == id {
			return i, nil
		}
		if id != "" && strings.HasPrefix(i.ID, id) {
			got = append(got, i)
		}
	}
	switch len(got) {
	case 0:
		return Incident{}, fmt.Errorf("incident %q: %w", id, os.ErrNotExist)
	case 1:
		return got[0], nil
	}
	return Incident{}, fmt.Errorf("%d incidents begin with %q", len(got), id)
}

// Path is the folder of an incident: a recording like any other.
func (n *Incidents) Path(id string) string { return filepath.Join(n.Dir, id) }

// Delete removes an incident.
func (n *Incidents) Delete(id string) error {
	n.fill()
	if id == "" || id != filepath.Base(id) || id == "." || id == ".." {
		return fmt.Errorf("incident %q: %w", id, os.ErrNotExist)
	}
	return n.remove(filepath.Join(n.Dir, id))
}

// remove removes a folder, incident.json first: what is left after a kill counts as not finished.
func (n *Incidents) remove(dir string) error {
	es, err := n.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := n.FS.Remove(filepath.Join(dir, folder.IncidentName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range es {
		p := filepath.Join(dir, e.Name)
		switch {
		case e.Name == folder.IncidentName:
		case e.Dir: // pulls
			folder.ClearPulls(n.FS, p)
			n.FS.RemoveDir(p)
		default:
			if err := n.FS.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return n.FS.RemoveDir(dir)
}

// Clean removes what was not finished and has not been begun since cleanAfter: somebody may be at it.
func (n *Incidents) Clean() error {
	n.fill()
	es, err := n.FS.ReadDir(n.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs error
	for _, e := range es {
		if !e.Dir || n.Now().Sub(begunAt(e.Name)) < cleanAfter {
			continue
		}
		f, err := n.FS.OpenRead(filepath.Join(n.Dir, e.Name, folder.IncidentName))
		if err == nil {
			f.Close()
			continue
		}
		if errors.Is(err, os.ErrNotExist) {
			errs = errors.Join(errs, n.remove(filepath.Join(n.Dir, e.Name)))
		}
	}
	return errs
}

// Size is what all incidents occupy, each file once.
func (n *Incidents) Size() int64 {
	n.fill()
	return vfs.Below(n.FS, n.Dir)
}

// Freeze keeps the present window of the ring folder ring: closed files as links, one that is being written to as a
// copy of its whole frames. It works while a recorder writes and after its end. Errors: ErrTooOften, ErrIncidentRoom,
// I/O errors (DiskFull).
func (n *Incidents) Freeze(ring string, cause Cause, reason string) (inc Incident, err error) {
	n.fill()
	now := n.Now().UTC()
	inc = Incident{Schema: "heapcam.incident/1", JVM: filepath.Base(ring), Cause: cause, Reason: reason,
		Auto: cause != Asked, Created: now, References: n.Listed, Ended: n.Ended || cause == Unended}
	all, err := folder.Read(n.FS, ring)
	if err != nil {
		return inc, err
	}
	if len(all.Files) == 0 {
		return inc, fmt.Errorf("%w: %w", all.NothingOwn(ring), os.ErrNotExist)
	}
	inc.Session, inc.Resource = all.Session, folder.ReadResource(n.FS, ring)
	for _, f := range all.Foreign {
		inc.Foreign = append(inc.Foreign, filepath.Base(f.File))
	}
	old, err := n.List()
	if err != nil {
		return inc, err
	}
	for _, o := range old {
		age := now.Sub(o.Created)
		if o.Auto && o.JVM == inc.JVM && age < n.Every && age >= 0 && !cause.after(o.Cause) {
			return inc, ErrTooOften
		}
	}
	if inc.Auto {
		inc.follow(old)
	}
	base := inc.JVM + "-" + now.Format(idTime)
	inc.ID = base
	for i := 2; ; i++ {
		if _, err := n.FS.ReadDir(filepath.Join(n.Dir, inc.ID)); errors.Is(err, os.ErrNotExist) {
			break
		}
		inc.ID = fmt.Sprintf("%s-%d", base, i)
	}
	dir := filepath.Join(n.Dir, inc.ID)
	old, ok, err := n.room(vfs.Block, old) // of a folder that cannot be removed again
	if err != nil {
		return inc, err
	}
	if !ok {
		return inc, ErrRoom
	}
	if err := n.FS.Mkdir(dir); err != nil {
		return inc, err
	}
	defer func() {
		if err != nil {
			_ = n.remove(dir) // what is left counts as not finished
		}
	}()
	if err := n.keep(ring, dir, all.Files, old, &inc); err != nil {
		return inc, err
	}
	if b, err := vfs.ReadSmall(n.FS, filepath.Join(ring, folder.RecordingName)); err == nil {
		if err := n.FS.WriteFile(filepath.Join(dir, folder.RecordingName), b); err != nil {
			return inc, err
		}
	}
	if cause == Unended {
		inc.replace(old)
	}
	b, err := folder.EncodeDocument(inc)
	if err != nil {
		return inc, err
	}
	if err := n.FS.SyncDir(dir); err != nil {
		return inc, err
	}
	if err := n.FS.WriteFile(filepath.Join(dir, folder.IncidentName), b); err != nil {
		return inc, err
	}
	if err := n.FS.SyncDir(n.Dir); err != nil {
		return inc, err
	}
	for _, id := range inc.Replaces {
		_ = n.Delete(id) // if it stays, the event has two incidents
	}
	return inc, nil
}

// replace makes the end of a JVM one incident with the storm and the exhaustion that it died of, if this one has all
// that theirs have. old are the incidents that there are, oldest first.
func (i *Incident) replace(old []Incident) {
	for _, o := range old {
		if d := i.Created.Sub(o.Created); !o.Auto || o.Ended || o.JVM != i.JVM || o.Session != i.Session || d < 0 ||
			d >= sameEvent || o.FirstGC < i.FirstGC || o.LastGC > i.LastGC || len(i.Left) > 0 {
			continue
		}
		if len(i.Replaces) == 0 { // what the first one followed, if anything
			i.Follows = o.Follows
		}
		i.Replaces = append(i.Replaces, o.ID)
		i.Reason = o.Reason + "; " + i.Reason
		if o.References != nil && (o.References.Why == "" || i.References == nil) {
			i.References = o.References
		}
	}
}

// follow finds the incident that this one follows among those that there are, oldest first.
func (i *Incident) follow(old []Incident) {
	for _, o := range old {
		if d := i.Created.Sub(o.Created); o.Auto && o.JVM == i.JVM && o.Session == i.Session && d >= 0 && d < together {
			i.Follows = &Followed{o.ID, o.Reason}
		}
	}
}

// room deletes the oldest of old that were frozen by themselves until there is room for size bytes more, and gives
// those that are left.
func (n *Incidents) room(size int64, old []Incident) (left []Incident, ok bool, err error) {
	for n.Size()+size > n.Max {
		k := slices.IndexFunc(old, func(i Incident) bool { return i.Auto })
		if k < 0 {
			return old, false, nil
		}
		if err := n.Delete(old[k].ID); err != nil {
			if _, there := n.read(old[k].ID); !errors.Is(there, os.ErrNotExist) {
				return old, false, err
			} // a pull that reads it keeps links, which count until it ends
		}
		old = append(old[:k], old[k+1:]...)
	}
	return old, true, nil
}

// keep links or copies what fits, newest first.
func (n *Incidents) keep(ring, dir string, names []vfs.Info, old []Incident, inc *Incident) error {
	var w segment.Index
	for i := len(names) - 1; i >= 0; i-- {
		from, to := filepath.Join(ring, names[i].Name), filepath.Join(dir, names[i].Name)
		f, err := segment.OpenIn(n.FS, from)
		if errors.Is(err, os.ErrNotExist) { // the ring continues
			inc.Left = append(inc.Left, names[i].Name)
			continue
		}
		closed := err != nil || f.Sealed() || i < len(names)-1 // what cannot be read is evidence too
		size := names[i].Occupies()
		var info segment.FrameInfo
		if err == nil {
			x := f.Window()
			if size = max(size, vfs.Occupied(f.Size)); !closed {
				size = vfs.Occupied(f.Size + segment.IndexSize(x.Frames))
			}
			info = x.FrameInfo
		}
		var ok bool
		if old, ok, err = n.room(size+3*vfs.Block, old); err != nil {
			closeFile(f)
			return err
		} else if !ok {
			closeFile(f)
			for ; i >= 0; i-- {
				inc.Left = append(inc.Left, names[i].Name)
			}
			break
		}
		if closed {
			err = n.FS.Link(from, to)
			if errors.Is(err, os.ErrNotExist) {
				inc.Left = append(inc.Left, names[i].Name)
				closeFile(f)
				continue
			}
		} else {
			err = segment.CopySealed(n.FS, f, to)
		}
		closeFile(f)
		if !closed && vfs.NoSpace(err) { // links of the others take no room
			if err := n.FS.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			inc.Full, inc.Left = true, append(inc.Left, names[i].Name)
			continue
		}
		if err != nil {
			return err
		}
		w.Widen(info)
		inc.Files++
		inc.Names = append(inc.Names, names[i].Name)
		inc.Bytes += size
	}
	slices.Reverse(inc.Names)
	inc.FirstGC, inc.LastGC = w.Info.FirstGC, w.Info.LastGC
	switch {
	case inc.Files == 0 && inc.Full:
		return fmt.Errorf("%s: %w", dir, errDiskFull)
	case inc.Files == 0:
		return ErrRoom
	}
	return nil
}

func closeFile(f *segment.File) {
	if f != nil {
		f.Close()
	}
}
