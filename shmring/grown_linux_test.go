package shmring_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
)

// TestOpenOfGrown: a JVM that went over to a larger ring while nobody read has only that one mapped. What is given is
// the ring before, which leads to it.
func TestOpenOfGrown(t *testing.T) {
	p := create(t, ringtest.Config{})
	f, err := os.Create(p.Path + shmring.NextSuffix)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	found, err := shmring.OpenOf(os.Getpid(), shmring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if found.Session() != p.Session {
		t.Errorf("session %v, want %v", found.Session(), p.Session)
	}
}

// TestOpenOfGrownDeleted: a ring that grew while nobody read, and whose file somebody then deleted, is found by the
// descriptor that the JVM holds.
func TestOpenOfGrownDeleted(t *testing.T) {
	p := create(t, ringtest.Config{})
	next := p.Path + shmring.NextSuffix
	if err := os.Rename(p.Path, next); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(next)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := os.Remove(next); err != nil {
		t.Fatal(err)
	}
	found, err := shmring.OpenOf(os.Getpid(), shmring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if found.Session() != p.Session {
		t.Errorf("session %v, want %v", found.Session(), p.Session)
	}
}
