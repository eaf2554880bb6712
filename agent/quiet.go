package agent

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	// quietAfter is how many lines of log one JVM, or one folder of rings, may cause in quietFor: both are others', who can cause as many as they like.
	// Errors do not count: what they tell of happens once.
	quietAfter = 100
	quietFor   = time.Minute
)

// quiet lets so many lines through, and says once that there would be more. It is a zerolog.Sampler.
type quiet struct {
	tell func()

	mu    sync.Mutex
	began time.Time
	n     int
}

func (q *quiet) Sample(level zerolog.Level) bool {
	if level >= zerolog.ErrorLevel {
		return true
	}
	q.mu.Lock()
	if now := time.Now(); now.Sub(q.began) >= quietFor {
		q.began, q.n = now, 0
	}
	q.n++
	n := q.n
	q.mu.Unlock()
	if n == quietAfter+1 {
		q.tell()
	}
	return n <= quietAfter
}

// quieted is log, bounded.
func quieted(log zerolog.Logger) zerolog.Logger {
	return log.Sample(&quiet{tell: func() {
		log.Warn().Int("lines", quietAfter).Dur("in", quietFor).Msg("it causes more lines of log than these: what is no error is left out for now")
	}})
}

// ringLog is for what is told of rings that are not recorded; bounded for each folder.
func (a *Agent) ringLog(path string) *zerolog.Logger {
	dir := filepath.Dir(path)
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.ringLogs[dir]
	if l == nil {
		made := quieted(a.cfg.Log.With().Str("rings", dir).Logger())
		l = &made
		a.ringLogs[dir] = l
	}
	return l
}
