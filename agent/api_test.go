package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func TestSocket(t *testing.T) {
	r := newRig(t, &sessiontest.MemStore{Limit: 1 << 30})
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r.play(p, tracetest.New(tracetest.Config{Seed: 1}), 3)
	sock, check := localSocket(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	boom := errors.New("no such JVM")
	go func() {
		attach := func(_ context.Context, q api.AttachRequest) (api.AttachReply, error) {
			if q.JVM == "x" {
				return api.AttachReply{}, boom
			}
			return api.AttachReply{PID: 7}, nil
		}
		kind := func(error) api.Kind { return api.Damaged }
		done <- api.New(r.a, api.Config{Attach: attach, Kind: kind}).Serve(ctx, sock)
	}()
	var c *api.Client
	wait(t, func() bool { c, err = api.Dial(sock); return err == nil })
	check()
	wait(t, func() bool {
		s, err := c.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(s.JVMs) == 1 && s.JVMs[0].Collections == 3 && s.Schema == api.StatusSchema
	})
	if a, err := c.Attach(ctx, api.AttachRequest{JVM: "y"}); err != nil || a.PID != 7 {
		t.Errorf("attach: %+v %v", a, err)
	}
	var re *api.RemoteError
	if _, err := c.Attach(ctx, api.AttachRequest{JVM: "x"}); !errors.As(err, &re) || re.Kind != api.Damaged ||
		re.Text != boom.Error() {
		t.Errorf("attach: %v", err)
	}
	if d, err := c.Detach(ctx, api.DetachRequest{ID: r.a.Status()[0].ID}); err != nil || d.Asked != 1 {
		t.Errorf("detach: %+v %v", d, err)
	}
	if p.Peek32(shmring.OffDetach) != 1 {
		t.Error("the probe was not asked to stop")
	}
	if err := api.New(r.a, api.Config{}).Serve(ctx, sock); err == nil {
		t.Error("two agents on one socket")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
