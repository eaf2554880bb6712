package upload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/ringstore"
)

const (
	// Suffix ends the key of each incident in the bucket.
	Suffix = ".heapcam"
	// FileName is the document that says what the bucket has, in the folder for recordings.
	FileName = "uploads.json"

	schema     = "heapcam.uploads/1"
	lookEvery  = 2 * time.Second
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
	maxState   = 16 << 20
	idTime     = "20060102T150405Z" // in the ID of an incident
)

// Config says what goes where.
type Config struct {
	// Out is the folder for recordings; incidents are below Incidents of it.
	Out, Incidents string
	// To names the bucket, and the prefix of keys; Bucket is it.
	To     bucket.Location
	Bucket bucket.Bucket
	// Host is the folder below the prefix, unless Redact leaves names out.
	Host   string
	Redact bool
	Log    zerolog.Logger
}

// Status is what an operator should know.
type Status struct {
	To       string `json:"to"`       // s3://BUCKET/PREFIX
	Pending  int    `json:"pending"`  // incidents that the bucket does not have yet
	Uploaded uint64 `json:"uploaded"` // incidents, those of earlier agents included
	Bytes    uint64 `json:"bytes"`    // sent by this agent, repeated parts included
	Failed   uint64 `json:"failed"`   // tries of this agent that failed
	Dropped  uint64 `json:"dropped"`  // incidents that were deleted before the bucket had them
	// Error is why the last try failed; absent: it did not.
	Error string    `json:"error,omitempty"`
	Since time.Time `json:"since,omitzero"` // since when tries fail
}

// Uploader uploads the incidents of an agent.
//
// Owner: the agent. Lifetime: from New to the end of Run's context. Concurrency: Run once; Status at any time.
// Errors: they are logged, and in Status.
type Uploader struct {
	cfg  Config
	list func() ([]ringstore.Incident, error)
	wait func(ctx context.Context, d time.Duration) // of tests

	mu sync.Mutex
	st Status

	state   state
	noState string // why the document could not be written; it was logged
}

// state is the document FileName.
type state struct {
	Schema   string             `json:"schema"`
	To       string             `json:"to"`
	Known    map[string]*upload `json:"incidents"` // that are on disk
	Uploaded uint64             `json:"uploaded"`
	Dropped  uint64             `json:"dropped"`
}

// upload is what is known of an incident.
type upload struct {
	Key    string `json:"key"`
	Upload string `json:"upload,omitempty"` // the server's name of one that was begun
	Done   bool   `json:"done,omitempty"`
	failed int    // tries of this agent
	logged string // why the last one failed
}

// New prepares uploads. It sends nothing.
func New(cfg Config) *Uploader {
	in := &ringstore.Incidents{Dir: filepath.Join(cfg.Out, cfg.Incidents)}
	u := &Uploader{cfg: cfg, list: in.List, wait: pause}
	u.st.To = cfg.To.String()
	return u
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Status says how far it is.
func (u *Uploader) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.st
}

// Run uploads until ctx is done.
func (u *Uploader) Run(ctx context.Context) {
	u.load()
	retry := firstRetry
	for ctx.Err() == nil {
		failed := u.pass(ctx)
		if !failed {
			retry = firstRetry
			u.wait(ctx, lookEvery)
			continue
		}
		u.wait(ctx, retry+rand.N(retry/4+1)) // not all agents at once
		retry = min(2*retry, lastRetry)
	}
}

// pass uploads what is pending, oldest first, until one fails.
func (u *Uploader) pass(ctx context.Context) (failed bool) {
	all, err := u.list()
	if err != nil {
		u.fail("", err)
		return true
	}
	u.look(all)
	// One that fails again and again does not keep the others.
	slices.SortStableFunc(all, func(a, b ringstore.Incident) int {
		return cmp.Compare(u.state.Known[a.ID].failed, u.state.Known[b.ID].failed)
	})
	for _, i := range all {
		x := u.state.Known[i.ID]
		if x.Done {
			continue
		}
		d, err := u.put(ctx, i, x)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			if _, gone := os.Stat(filepath.Join(u.cfg.Out, u.cfg.Incidents, i.ID)); errors.Is(gone, os.ErrNotExist) {
				return false // the next pass counts it
			}
			x.failed++
			u.fail(i.ID, err)
			return true
		}
		u.done(i, x, d)
	}
	return false
}

// look counts what is there, and what is there no more.
func (u *Uploader) look(all []ringstore.Incident) {
	there := map[string]bool{}
	pending, changed := 0, false
	for _, i := range all {
		there[i.ID] = true
		if u.state.Known[i.ID] == nil {
			u.state.Known[i.ID] = &upload{Key: u.key(i)}
			changed = true
		}
		if !u.state.Known[i.ID].Done {
			pending++
		}
	}
	for id, x := range u.state.Known {
		if there[id] {
			continue
		}
		if !x.Done {
			u.state.Dropped++
			logs.Write(&u.cfg.Log, logs.UploadDropped, logs.Incident.Of(id))
		}
		delete(u.state.Known, id)
		changed = true
	}
	u.mu.Lock()
	u.st.Pending, u.st.Dropped = pending, u.state.Dropped
	u.mu.Unlock()
	if changed {
		u.save()
	}
}

// redact says whether an incident is uploaded without names: all are, or a rule says so of its JVM.
func (u *Uploader) redact(i ringstore.Incident) bool { return u.cfg.Redact || i.Resource.Redacted() }

// key is the name of an incident in the bucket: PREFIX/HOST/ID-SESSION.heapcam. The beginning of the session tells
// hosts of one name apart. With Redact no name is in it.
func (u *Uploader) key(i ringstore.Incident) string {
	session := bucket.Plain(i.Session[:min(len(i.Session), 12)])
	if u.redact(i) {
		at := i.Created.UTC().Format(idTime)
		_, more, _ := strings.Cut(i.ID, at) // a number, where several were made in this second
		return path.Join(u.cfg.To.Key, at+bucket.Plain(more)[:min(len(more), 8)]+"-"+session+Suffix)
	}
	return path.Join(u.cfg.To.Key, bucket.Plain(u.cfg.Host), bucket.Plain(i.ID)+"-"+session+Suffix)
}

// put has the bucket have an incident. One that it has already, of an earlier try whose answer was lost, is not sent
// again.
func (u *Uploader) put(ctx context.Context, i ringstore.Incident, x *upload) (bucket.Done, error) {
	dir := filepath.Join(u.cfg.Out, u.cfg.Incidents, i.ID)
	before := u.Status().Bytes
	d, err := u.cfg.Bucket.Put(ctx, x.Key, func(w io.Writer) error {
		_, err := ringstore.Pull(ctx, dir, w, ringstore.PullOptions{Redact: u.redact(i), Created: i.Created})
		return err
	}, bucket.Put{Resume: x.Upload, Metadata: map[string]string{"Heapcam-Session": bucket.Plain(i.Session)},
		Begun: func(id string) error {
			x.Upload = id
			u.save()
			return nil
		},
		Progress: func(sent int64) { u.sent(before + uint64(sent)) }})
	u.sent(before + uint64(d.Sent))
	if !errors.Is(err, bucket.ErrExists) {
		return d, err
	}
	item, meta, serr := u.cfg.Bucket.Stat(ctx, x.Key)
	if serr != nil {
		return d, serr
	}
	if meta["Heapcam-Session"] != bucket.Plain(i.Session) {
		return d, fmt.Errorf("%w, and it is of another recording", err)
	}
	d.Bytes = item.Size
	return d, nil
}

func (u *Uploader) sent(bytes uint64) {
	u.mu.Lock()
	u.st.Bytes = bytes
	u.mu.Unlock()
}

func (u *Uploader) done(i ringstore.Incident, x *upload, d bucket.Done) {
	x.Done, x.Upload = true, ""
	u.state.Uploaded++
	u.save()
	u.mu.Lock()
	u.st.Uploaded, u.st.Error, u.st.Since = u.state.Uploaded, "", time.Time{}
	u.st.Pending--
	u.mu.Unlock()
	logs.Write(&u.cfg.Log, logs.Uploaded, logs.Incident.Of(i.ID),
		logs.Target.Of(bucket.Location{Bucket: u.cfg.To.Bucket, Key: x.Key}.String()), logs.Bytes.Of(d.Bytes))
}

// fail counts an error. The same one of the same incident again is not logged; id is "" if it is of none.
func (u *Uploader) fail(id string, err error) {
	u.mu.Lock()
	again := u.st.Error == err.Error()
	if x := u.state.Known[id]; x != nil {
		again, x.logged = x.logged == err.Error(), err.Error()
	}
	if u.st.Since.IsZero() {
		u.st.Since = time.Now().UTC().Truncate(time.Second)
	}
	u.st.Error = err.Error()
	u.st.Failed++
	u.mu.Unlock()
	if !again {
		logs.Write(&u.cfg.Log, logs.NotUploaded, logs.Incident.Of(id), logs.Err.Of(err))
	}
}

// load reads what an earlier agent knew. Without the document, or with one of another bucket, all incidents on disk are
// pending; those that the bucket has are found there.
func (u *Uploader) load() {
	u.state = state{Schema: schema, To: u.cfg.To.String(), Known: map[string]*upload{}}
	f, err := os.Open(filepath.Join(u.cfg.Out, FileName))
	if err != nil {
		return
	}
	defer f.Close()
	var s state
	b, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil || json.Unmarshal(b, &s) != nil || s.Schema != schema || s.To != u.state.To {
		return
	}
	for id, x := range s.Known {
		if x != nil && strings.HasPrefix(x.Key, u.cfg.To.Key) {
			u.state.Known[id] = x
		}
	}
	u.state.Uploaded, u.state.Dropped = s.Uploaded, s.Dropped
	u.mu.Lock()
	u.st.Uploaded, u.st.Dropped = s.Uploaded, s.Dropped
	u.mu.Unlock()
}

// save writes the document. Where it cannot be written, a later agent asks the bucket what it has.
func (u *Uploader) save() {
	b, err := json.MarshalIndent(&u.state, "", " ")
	if err == nil {
		err = ringstore.OS.WriteFile(filepath.Join(u.cfg.Out, FileName), append(b, '\n'))
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why != "" && why != u.noState {
		logs.Write(&u.cfg.Log, logs.UploadsNotKept, logs.Err.Of(err))
	}
	u.noState = why
}
