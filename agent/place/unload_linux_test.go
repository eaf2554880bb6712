package place

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/internal/procfs"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
)

// TestUnload: a probe that was loaded in vain stops and leaves no ring; one that another recorder reads does not.
func TestUnload(t *testing.T) {
	self, err := procfs.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	self.Close()
	dir := t.TempDir()
	p, err := ringtest.Create(dir, ringtest.Config{
		Mapped: true, PID: uint32(os.Getpid()), StartTicks: self.StartTicks,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	j := jvms.JVM{PID: os.Getpid(), StartTicks: self.StartTicks}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	reader, err := shmring.Open(p.Path, shmring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Acquire(); err != nil {
		t.Fatal(err)
	}
	if err := Unload(ctx, j, 0); !errors.Is(err, shmring.ErrBusy) || p.Peek32(shmring.OffDetach) != 0 {
		t.Errorf("the ring of another recorder: %v", err)
	}
	reader.Close()

	j.StartTicks++
	if err := Unload(ctx, j, 0); err == nil || p.Peek32(shmring.OffDetach) != 0 {
		t.Errorf("another process of this pid: %v", err)
	}
	j.StartTicks--

	ended := p.EndWhenAsked()
	if err := Unload(ctx, j, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
