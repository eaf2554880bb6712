package profiles

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/ringstore"
)

const (
	// KeptName is the file of profiles that waited when the agent ended, in the folder for recordings.
	KeptName = ".profiles"
	// maxKept bounds what is read of it: the queue in base64, with names. maxKeptLine bounds one profile.
	maxKept     = 2 * maxQueue
	maxKeptLine = 8 << 20
	// keepEvery is how often what waits is written while the server is away: what a kill of the agent loses at most.
	keepEvery = 5 * time.Minute
)

// keptProfile is a line of the file.
type keptProfile struct {
	ID        string            `json:"id"`
	Recording string            `json:"recording"`
	Labels    map[string]string `json:"labels"`
	To        time.Time         `json:"to"`
	Body      []byte            `json:"body"`
}

// labelNames are those that a profile may have.
var labelNames = map[string]bool{"service_name": true, "service_version": true, "service_namespace": true,
	"host": true, "instance": true}

// keep writes what waits, for the next agent: at its end, and as it runs for one that is killed. It is called by run,
// or behind it.
func (p *pusher) keep() {
	p.mu.Lock()
	queue := slices.Clone(p.queue)
	p.mu.Unlock()
	p.keptAt = p.now()
	if p.cfg.Out == "" || len(queue) == 0 {
		return
	}
	var b bytes.Buffer
	for _, e := range queue {
		line, err := json.Marshal(keptProfile{e.id, e.recording, e.labels, e.to, e.body})
		if err != nil {
			continue
		}
		b.Write(append(line, '\n'))
	}
	if err := ringstore.OS.WriteFile(filepath.Join(p.cfg.Out, KeptName), b.Bytes()); err != nil {
		logs.Write(&p.cfg.Log, logs.ProfilesNotKept, logs.Err.Of(err))
		return
	}
	p.kept = true
}

// keepNow writes what waits while the server is away, at most once in keepEvery.
func (p *pusher) keepNow() {
	if p.keptAt.IsZero() || p.now().Sub(p.keptAt) >= keepEvery {
		p.keep()
	}
}

// forget removes the file as soon as the server has some of it, so that no agent pushes that again.
func (p *pusher) forget() {
	if !p.kept {
		return
	}
	p.kept, p.keptAt = false, time.Time{}
	if err := os.Remove(filepath.Join(p.cfg.Out, KeptName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		logs.Write(&p.cfg.Log, logs.ProfilesNotKept, logs.Err.Of(err))
	}
}

// recall takes over what the agent before has kept.
func (p *pusher) recall() {
	if p.cfg.Out == "" {
		return
	}
	all := p.readFile()
	p.recount(len(all))
	for _, e := range all {
		p.put(e)
	}
}

// readFile reads the file of the agent before.
func (p *pusher) readFile() []*encoded {
	name := filepath.Join(p.cfg.Out, KeptName)
	f, err := os.Open(name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			logs.Write(&p.cfg.Log, logs.ProfilesNotKept, logs.Err.Of(err))
		}
		return nil
	}
	all := readKept(f)
	f.Close()
	p.kept = true // until the server has some of it
	if len(all) == 0 {
		p.forget()
	}
	return all
}

// readKept reads profiles. What is no profile of ours ends it.
func readKept(r io.Reader) (out []*encoded) {
	lines := bufio.NewScanner(io.LimitReader(r, maxKept))
	lines.Buffer(nil, maxKeptLine)
	size := 0
	for lines.Scan() {
		var k keptProfile
		if json.Unmarshal(lines.Bytes(), &k) != nil || len(k.ID) != 36 || len(k.Labels) > len(labelNames) ||
			!bytes.HasPrefix(k.Body, []byte{0x1f, 0x8b}) {
			break
		}
		for name, value := range k.Labels {
			if !labelNames[name] || value == "" || len(value) > 1024 {
				return out
			}
		}
		if size += len(k.Body); size > maxQueue {
			break
		}
		out = append(out, &encoded{id: k.ID, recording: k.Recording, labels: k.Labels, to: k.To, body: k.Body})
	}
	return out
}
