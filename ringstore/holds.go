package ringstore

import (
	"path/filepath"
	"strings"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// holds are the segments that the ring has evicted while a pull reads them: they still occupy blocks, so they count.
//
// Owner: a store. Concurrency: one goroutine. Errors: none; what cannot be looked at counts as held.
type holds struct {
	fs    vfs.FS
	dir   string           // the ring folder
	files []segment.Sealed // Path is the pull's link
}

// size is what they occupy, bytes.
func (h *holds) size() (n int64) {
	for _, f := range h.files {
		n += f.Size
	}
	return n
}

// evicted takes f, whose own name is gone, from the pulls that have not begun to read it. Those that have keep it held.
func (h *holds) evicted(f segment.Sealed) {
	dir := filepath.Join(h.dir, folder.PullsName)
	pulls, err := h.fs.ReadDir(dir)
	if err != nil {
		return
	}
	held := ""
	for _, p := range pulls {
		link := filepath.Join(dir, p.Name, filepath.Base(f.Path))
		if !folder.TakeLink(h.fs, link) {
			held = link
		}
	}
	if held != "" {
		h.files = append(h.files, segment.Sealed{Path: held, Size: f.Size})
	}
}

// release looks whether what pulls held is free now.
func (h *holds) release() {
	for i := 0; i < len(h.files); {
		if folder.TakeLink(h.fs, h.files[i].Path) {
			h.files = append(h.files[:i], h.files[i+1:]...)
		} else {
			i++
		}
	}
}

// recover clears what dead pulls left. A link of a living pull whose file the ring no longer has is held.
func (h *holds) recover() {
	dir := filepath.Join(h.dir, folder.PullsName)
	folder.ClearPulls(h.fs, dir)
	pulls, err := h.fs.ReadDir(dir)
	if err != nil {
		return
	}
	have := map[string]bool{}
	files, err := folder.RingFiles(h.fs, h.dir)
	if err != nil {
		return
	}
	for _, f := range files {
		have[f.Name] = true
	}
	seen := map[vfs.FileID]bool{}
	for _, p := range pulls {
		links, err := h.fs.ReadDir(filepath.Join(dir, p.Name))
		if err != nil {
			continue
		}
		for _, l := range links {
			if strings.HasSuffix(l.Name, segment.Suffix) && !have[l.Name] && (l.ID == vfs.FileID{} || !seen[l.ID]) {
				seen[l.ID] = true
				h.files = append(h.files, segment.Sealed{Path: filepath.Join(dir, p.Name, l.Name), Size: l.Occupies()})
			}
		}
	}
	h.release()
}
