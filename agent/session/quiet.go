package session

import (
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
)

const (
	// quietAfter is how many lines of log one JVM, or one folder of rings, may cause in quietFor: both are others', who
	// can cause as many as they like. Errors do not count: each of their causes occurs once.
	quietAfter = 100
	quietFor   = time.Minute
)

// quiet lets quietAfter lines through in quietFor, and logs once that it drops further ones. It is a zerolog.Sampler.
type quiet struct {
	report func()

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
		q.report()
	}
	return n <= quietAfter
}

// BoundLog returns log, bounded: what a JVM or a folder of rings makes the agent write.
func BoundLog(log zerolog.Logger) zerolog.Logger {
	return log.Sample(&quiet{report: func() {
		logs.Write(&log, logs.LogBounded, logs.Lines.Of(quietAfter), logs.Span.Of(quietFor))
	}})
}
