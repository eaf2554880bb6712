package graph

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/heapcam/heapcam/internal/room"
)

// TestRoom: with arrays in a file the graph is the same, and so is one that is read from what was kept.
func TestRoom(t *testing.T) {
	const n = 100_000
	slots := len(generated(n).Slots)
	r, err := room.New(t.TempDir(), int64(FileSize(n, uint64(slots))))
	if errors.Is(err, room.ErrUnsupported) {
		t.Skip("not run: " + err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want, err := Build(generated(n), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := BuildIn(r, generated(n), nil)
	if err != nil {
		t.Fatal(err)
	}
	used := r.Used()
	if used < n*40 || used > int64(FileSize(n, uint64(slots)))/2 {
		t.Errorf("%d bytes of the file are used", used)
	}
	got.room = nil
	if !reflect.DeepEqual(got, want) {
		t.Error("another graph")
	}
	all := []Member{{n / 2, 1}, {n - 1, 1}}
	got.room = r
	if g, w := got.Holders(all), want.Holders(all); !reflect.DeepEqual(g, w) {
		t.Errorf("%+v, want %+v", g, w)
	}
	if r.Used() == used {
		t.Error("an answer took no array of the file")
	}
	b := kept(t, want)
	if got, err = Read(r, bytes.NewReader(b), int64(len(b))); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.size, want.size) || !reflect.DeepEqual(got.parent, want.parent) {
		t.Error("another graph was kept")
	}
}
