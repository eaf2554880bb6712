package profiles

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
)

const (
	// pushPath is the method of Pyroscope's push service.
	pushPath = "/push.v1.PusherService/Push"
	// profileName is the name by which Pyroscope knows profiles of memory.
	profileName = "memory"

	// maxQueue bounds the profiles that wait, bytes; maxBatch those of one request, maxBatchBytes their bytes.
	maxQueue      = 16 << 20
	maxBatch      = 16
	maxBatchBytes = 1 << 20
	pushTimeout   = 30 * time.Second
	firstRetry    = time.Second
	lastRetry     = time.Minute
	maxReply      = 4 << 10
)

// pusher pushes profiles to a server, oldest first.
type pusher struct {
	cfg    Config
	client *http.Client
	wait   func(ctx context.Context, d time.Duration) // of tests
	wake   chan struct{}

	mu    sync.Mutex
	queue []*encoded
	bytes int
	st    Status
	full  bool // the log says that the queue is
	tally tally

	// Of run, and of Run around it.
	alone  bool      // one profile a request: the server has refused several
	logged string    // error that the log has
	kept   bool      // a file has what waited at keptAt
	keptAt time.Time // zero: nothing was kept since the server took something
	now    func() time.Time
}

func newPusher(cfg Config) *pusher {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout, t.MaxIdleConnsPerHost = pushTimeout, 1
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &pusher{cfg: cfg, wait: pause, now: time.Now, wake: make(chan struct{}, 1),
		client: &http.Client{Transport: t, Timeout: pushTimeout, CheckRedirect: stay}}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (p *pusher) count(st *Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st.Pending, st.Pushed, st.Failed, st.Dropped = len(p.queue), p.st.Pushed, p.st.Failed, st.Dropped+p.st.Dropped
	st.To, st.Error = p.cfg.URL, p.st.Error
}

// put appends a profile; the oldest ones make room.
func (p *pusher) put(e *encoded) {
	p.mu.Lock()
	p.queue = append(p.queue, e)
	p.bytes += len(e.body)
	drop := 0
	for ; p.bytes > maxQueue; drop++ {
		p.bytes -= len(p.queue[drop].body)
		p.queue[drop] = nil
	}
	p.queue = p.queue[drop:]
	p.st.Dropped += uint64(drop)
	news := drop > 0 && !p.full
	p.full = p.full || drop > 0
	p.mu.Unlock()
	p.note()
	if news {
		logs.Write(&p.cfg.Log, logs.ProfilesDropped)
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// batch gives the oldest profiles, which stay in the queue.
func (p *pusher) batch() (out []*encoded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := 0
	for _, e := range p.queue {
		alone := p.alone || p.cfg.OTLP
		if size += len(e.body); len(out) > 0 && (alone || len(out) == maxBatch || size > maxBatchBytes) {
			break
		}
		out = append(out, e)
	}
	return out
}

// done takes profiles out of the queue, unless they have made room meanwhile.
func (p *pusher) done(all []*encoded, pushed bool) {
	defer p.note()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range all {
		if i := slices.Index(p.queue, e); i >= 0 {
			p.queue = slices.Delete(p.queue, i, i+1)
			p.bytes -= len(e.body)
			if !pushed {
				p.st.Dropped++
			}
		} else if pushed { // it was counted as dropped
			p.st.Dropped--
		}
		if pushed {
			p.st.Pushed++
			p.st.Error = ""
		}
	}
	p.full = p.full && len(p.queue) > 0
}

// run pushes until ctx is done.
func (p *pusher) run(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		all := p.batch()
		if len(all) == 0 {
			select {
			case <-ctx.Done():
			case <-p.wake:
			}
			continue
		}
		err := p.send(ctx, all)
		var no *refusedError
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			p.forget()
			p.done(all, true)
			if p.logged != "" {
				logs.Write(&p.cfg.Log, logs.ProfilesPushedAgain)
			}
			p.logged, p.alone, retry = "", false, firstRetry
			continue
		case errors.As(err, &no) && len(all) > 1: // which one is it?
			p.alone = true
			p.failed(err)
			continue
		case errors.As(err, &no):
			p.failed(err)
			p.forget()
			p.done(all, false)
			continue
		}
		p.failed(err)
		p.keepNow()
		p.wait(ctx, retry+rand.N(retry/4+1)) // not all agents at once
		retry = min(2*retry, lastRetry)
	}
}

// failed counts an error. The same one again is not logged.
func (p *pusher) failed(err error) {
	p.mu.Lock()
	p.st.Failed++
	p.st.Error = err.Error()
	p.mu.Unlock()
	if text := err.Error(); text != p.logged {
		p.logged = text
		logs.Write(&p.cfg.Log, logs.ProfilesNotPushed, logs.Err.Of(err))
	}
}

// refusedError says that the server will never take what was sent.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// never are the answers that do not change when the same is sent again.
var never = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
	http.StatusUnsupportedMediaType}

// send sends profiles in one request.
func (p *pusher) send(ctx context.Context, all []*encoded) error {
	r, err := p.request(ctx, all)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "heapcam")
	if p.cfg.Tenant != "" {
		r.Header.Set("X-Scope-OrgID", p.cfg.Tenant)
	}
	if p.cfg.Credentials != nil {
		secret, err := p.cfg.Credentials()
		if err != nil {
			return err
		}
		if user, password, ok := strings.Cut(secret, ":"); ok {
			r.SetBasicAuth(user, password)
		} else {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
	}
	a, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, rerr := io.ReadAll(io.LimitReader(a.Body, maxReply))
	switch {
	case a.StatusCode/100 == 2:
		if rerr == nil && p.cfg.OTLP {
			return otlpRefused(text)
		}
		return rerr // an answer that is cut off may be of a proxy
	case slices.Contains(never, a.StatusCode):
		return &refusedError{said(a.Status, text)}
	}
	return errors.New(said(a.Status, text))
}

// request makes the request for profiles, in the format of the server.
func (p *pusher) request(ctx context.Context, all []*encoded) (*http.Request, error) {
	path, kind, encoding := pushPath, "application/json", ""
	var body []byte
	var err error
	if p.cfg.OTLP {
		path, kind, encoding = otlpPath, "application/x-protobuf", "gzip"
		body, err = otlpRequest(all[0]) // batch gives one
	} else {
		body, err = request(all)
	}
	if err != nil {
		return nil, &refusedError{err.Error()}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(p.cfg.URL, "/")+path,
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", kind)
	if p.cfg.OTLP {
		r.Header.Set("Content-Encoding", encoding)
	} else {
		r.Header.Set("Connect-Protocol-Version", "1")
	}
	return r, nil
}

// said is the answer of a server.
func said(status string, text []byte) string {
	const most = 200
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSuffix(fmt.Sprintf("the server answered %s: %s", status, line[:min(len(line), most)]), ": ")
}

// What a request consists of: a message of push.v1 as JSON.
type (
	pushRequest struct {
		Series []pushSeries `json:"series"`
	}
	pushSeries struct {
		Labels  []pushLabel  `json:"labels"`
		Samples []pushSample `json:"samples"`
	}
	pushLabel struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	pushSample struct {
		RawProfile string `json:"rawProfile"` // base64
		ID         string `json:"ID"`
	}
)

func request(all []*encoded) ([]byte, error) {
	var out pushRequest
	for _, e := range all {
		s := pushSeries{Labels: []pushLabel{{"__name__", profileName}},
			Samples: []pushSample{{base64.StdEncoding.EncodeToString(e.body), e.id}}}
		for _, k := range slices.Sorted(maps.Keys(e.labels)) {
			s.Labels = append(s.Labels, pushLabel{k, e.labels[k]})
		}
		slices.SortFunc(s.Labels, func(a, b pushLabel) int { return cmp.Compare(a.Name, b.Name) })
		out.Series = append(out.Series, s)
	}
	return json.Marshal(out)
}
