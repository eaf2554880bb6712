package ringstore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// between does something when the lock of a pull has just been made, or has just been found missing.
type between struct {
	vfs.FS
	created, missing func(lock string)
}

func (b *between) Create(path string) (vfs.File, error) {
	f, err := b.FS.Create(path)
	if filepath.Base(path) == folder.LockName && b.created != nil {
		b.created(path)
	}
	return f, err
}

func (b *between) OpenRead(path string) (vfs.File, error) {
	if filepath.Base(path) == folder.LockName && b.missing != nil {
		b.missing(path)
		b.missing = nil
		return nil, os.ErrNotExist
	}
	return b.FS.OpenRead(path)
}

// TestPullsBegin: what another pull, or the store, clears while a pull begins takes nothing from it.
func TestPullsBegin(t *testing.T) {
	for name, created := range map[string]func(fs vfs.FS, lock string){
		"cleared": func(fs vfs.FS, lock string) { folder.ClearPulls(fs, filepath.Dir(filepath.Dir(lock))) },
		"being cleared": func(fs vfs.FS, lock string) {
			f, err := fs.OpenRead(lock)
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := f.TryLock(true); !ok || err != nil {
				t.Fatal(ok, err)
			}
			t.Cleanup(func() { f.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(1<<19, 0.2, 1)
			if err := errors.Join(p.open(), p.put(true, 5000)); err != nil {
				t.Fatal(err)
			}
			times := 0
			fs := &between{FS: p.fs, created: func(lock string) {
				if times++; times == 1 {
					created(p.fs, lock)
				}
			}}
			var out bytes.Buffer
			m, err := ringstore.Pull(context.Background(), dir, &out, ringstore.PullOptions{FS: fs})
			if err != nil || len(m.Files) != 1 || len(m.Dropped) > 0 || times != 2 {
				t.Errorf("%+v, %v, begun %d times", m, err, times)
			}
		})
	}
}

// TestLivingPull: a pull whose lock appears while its folder is looked at is no pull that has ended.
func TestLivingPull(t *testing.T) {
	pulls := filepath.Join(t.TempDir(), folder.PullsName)
	own, lock := folder.NewPull(vfs.OS, pulls)
	if own == "" {
		t.Fatal("no folder")
	}
	defer lock.Close()
	link := filepath.Join(own, "00000001.hcr")
	folder.ClearPulls(&between{FS: vfs.OS, missing: func(string) {
		if err := os.WriteFile(link, nil, 0o600); err != nil {
			t.Error(err)
		}
	}}, pulls)
	if _, err := os.Stat(link); err != nil {
		t.Error(err)
	}
	lock.Close()
	folder.ClearPulls(vfs.OS, pulls)
	if _, err := os.Stat(own); !os.IsNotExist(err) {
		t.Errorf("a pull that has ended was left: %v", err)
	}
}
