package svc

import (
	"context"
	"io"
	"strings"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// Run runs f as the service that the control manager started. f's context is done when the manager wants the service
// to stop. Call it only under the control manager. Errors: those of f and of the control manager.
func Run(ctx context.Context, f func(ctx context.Context) error) error {
	h := &handler{ctx: ctx, f: f}
	if err := svc.Run(Name, h); err != nil {
		return err
	}
	return h.err
}

type handler struct {
	ctx context.Context
	f   func(ctx context.Context) error
	err error
}

const (
	accepts    = svc.AcceptStop | svc.AcceptShutdown
	exitFailed = 1
)

// Execute implements svc.Handler.
func (h *handler) Execute(
	_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status,
) (ownCode bool, code uint32) {
	status <- svc.Status{State: svc.StartPending}
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- h.f(ctx) }()
	status <- svc.Status{State: svc.Running, Accepts: accepts}
	for {
		select {
		case h.err = <-done:
			status <- svc.Status{State: svc.StopPending}
			if h.err != nil {
				Log(io.Discard).Write([]byte(" ERR " + h.err.Error()))
				return true, exitFailed // the recovery actions follow
			}
			return false, 0
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- r.CurrentStatus
			case svc.Stop, svc.Shutdown:
				status <- svc.Status{State: svc.StopPending}
				cancel()
			}
		}
	}
}

// Log gives a writer to the event log of the service's source, one line per write. ERR or WRN in the line sets the
// level. It gives fallback if there is no such log.
func Log(fallback io.Writer) io.Writer {
	l, err := eventlog.Open(Name)
	if err != nil {
		return fallback
	}
	return &events{l}
}

// events writes lines to the event log. It ignores errors: a full or missing log never ends the service.
type events struct{ l *eventlog.Log }

func (e *events) write(id uint32, s string) {
	switch {
	case id == 3:
		e.l.Error(id, s)
	case id == 2:
		e.l.Warning(id, s)
	default:
		e.l.Info(id, s)
	}
}

func (e *events) Write(b []byte) (int, error) {
	s := strings.TrimSpace(string(b))
	id := uint32(1)
	switch {
	case strings.Contains(s, " ERR "):
		id = 3
	case strings.Contains(s, " WRN "):
		id = 2
	}
	e.write(id, s)
	return len(b), nil
}
