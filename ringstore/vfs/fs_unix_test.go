//go:build unix

package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestNoLinkIsFollowed: whoever puts symbolic links into a folder that root records into gets nothing written
// elsewhere.
func TestNoLinkIsFollowed(t *testing.T) {
	dir, aside := t.TempDir(), t.TempDir()
	victim := filepath.Join(aside, "victim")
	link := func(to, name string) string {
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.WriteFile(victim, []byte("whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	doc := filepath.Join(dir, "recording.json")
	link(victim, "recording.json.new")
	if err := OS.WriteFile(doc, []byte("ours")); err != nil {
		t.Error(err)
	}
	if f, err := OS.Open(link(victim, "00000001.hcr")); err == nil {
		t.Error("a link was opened to be written")
		f.Close()
	}
	if f, err := OS.Create(link(filepath.Join(aside, "new"), "00000002.hcr")); err == nil {
		t.Error("a file was created through a link")
		f.Close()
	}
	if err := OS.Mkdir(link(aside, "ring")); err == nil {
		t.Error("a link counts as our folder")
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "whole" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := os.ReadFile(doc); err != nil || string(b) != "ours" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Lstat(filepath.Join(aside, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if f, err := OS.OpenRead(filepath.Join(dir, "00000001.hcr")); err != nil { // a reader may name a link
		t.Error(err)
	} else {
		f.Close()
	}
}
