package metrics

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/logs"
)

// Serve serves h on l until ctx is done. One address may have few connections: anybody may connect. What goes wrong
// with a connection is logged.
func Serve(ctx context.Context, l net.Listener, h http.Handler, to *zerolog.Logger) error {
	srv := &http.Server{Handler: h, ReadTimeout: timeout, WriteTimeout: 2 * timeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: log.New(lines{to}, "", 0)}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(api.LimitConnections(l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// lines makes log lines of what net/http reports.
type lines struct{ to *zerolog.Logger }

func (w lines) Write(p []byte) (int, error) {
	logs.Write(w.to, logs.MetricsTrouble, logs.Err.Of(errors.New(strings.TrimSpace(string(p)))))
	return len(p), nil
}
