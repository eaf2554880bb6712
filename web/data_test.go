package web

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// TestCache: a result that several requests want is computed once; a computation that no request waits for is
// cancelled; a failed one is repeated.
func TestCache(t *testing.T) {
	c := cache[int]{ctx: context.Background(), most: 2}
	var made atomic.Int32
	begun, stopped := make(chan bool), make(chan bool)
	slow := func(ctx context.Context) (int, error) {
		made.Add(1)
		close(begun)
		<-ctx.Done()
		close(stopped)
		return 0, ctx.Err()
	}
	one, leaveOne := context.WithCancel(context.Background())
	two, leaveTwo := context.WithCancel(context.Background())
	left := make(chan error, 2)
	go func() { _, err := c.get(one, "a", slow); left <- err }()
	<-begun
	go func() { _, err := c.get(two, "a", slow); left <- err }()
	leaveOne()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	leaveTwo()
	<-left
	<-stopped
	if made.Load() != 1 {
		t.Fatalf("made %d times", made.Load())
	}
	for _, want := range []int{7, 7} {
		v, err := c.get(context.Background(), "b", func(context.Context) (int, error) { made.Add(1); return 7, nil })
		if v != want || err != nil {
			t.Fatal(v, err)
		}
	}
	if made.Load() != 2 {
		t.Fatalf("made %d times", made.Load())
	}
	boom := errors.New("boom")
	if _, err := c.get(context.Background(), "c", func(context.Context) (int, error) { return 0, boom }); err != boom {
		t.Fatal(err)
	}
	if v, err := c.get(context.Background(), "c", func(context.Context) (int, error) { return 3, nil }); v != 3 ||
		err != nil {
		t.Fatal(v, err)
	}
}

// TestCacheRoom: results that were used least recently are dropped where the others need the room, but never the newest
// one.
func TestCacheRoom(t *testing.T) {
	c := cache[int]{ctx: context.Background(), most: 9, room: 100, size: func(v int) int { return v }}
	made := 0
	get := func(key string, v int) {
		if _, err := c.get(context.Background(), key,
			func(context.Context) (int, error) { made++; return v, nil }); err != nil {
			t.Fatal(err)
		}
	}
	get("a", 40)
	get("b", 40)
	get("a", 40) // now b is the older one
	get("c", 50)
	get("a", 40)
	if made != 3 {
		t.Fatalf("made %d results, want 3", made)
	}
	get("b", 40)
	get("d", 200)
	get("d", 200)
	if made != 5 {
		t.Fatalf("made %d results, want 5", made)
	}
}
