// Package storetest is a file system in memory for tests of stores: it counts what occupies blocks as a disk does (by
// file, whatever its names, open ones without a name too), lets operations fail, and forgets at a power loss what was
// not synced.
package storetest

import (
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"

	"github.com/heapcam/heapcam/ringstore"
)

// Block is what the disk allocates in.
const Block = 4096

type inode struct {
	id     uint64
	dir    bool
	data   []byte
	synced []byte
	ahead  int64 // allocated beyond the length
	links  int
	open   int
	shared int
	locked bool
}

func (i *inode) blocks() int64 {
	if i.dir {
		return Block
	}
	return (max(int64(len(i.data)), i.ahead) + Block - 1) / Block * Block
}

// MemFS is a ringstore.FS.
type MemFS struct {
	mu      sync.Mutex
	next    uint64
	names   map[string]*inode
	durable map[string]*inode // names that a power loss leaves
	all     map[*inode]bool   // that occupy blocks

	// Fail, if set, is asked before each operation; an error makes it fail. A write that fails takes half of its
	// bytes before.
	Fail func(op, path string) error
	// After, if set, gets what is occupied after each operation that takes blocks.
	After func(op string, occupied int64)
	// Capacity is the size of the disk, 0: none. Beyond it writes end with ENOSPC.
	Capacity int64
	// Foreign is what others have written to the disk.
	Foreign int64
	// Ops counts operations.
	Ops int
}

var _ ringstore.FS = (*MemFS)(nil)

// New makes an empty file system.
func New() *MemFS {
	return &MemFS{names: map[string]*inode{}, durable: map[string]*inode{}, all: map[*inode]bool{}}
}

func (m *MemFS) op(op, p string) error {
	m.Ops++
	if m.Fail != nil {
		if err := m.Fail(op, p); err != nil {
			return &os.PathError{Op: op, Path: p, Err: err}
		}
	}
	return nil
}

func (m *MemFS) occupied() (n int64) {
	for i := range m.all {
		if i.links == 0 && i.open == 0 {
			delete(m.all, i)
			continue
		}
		n += i.blocks()
	}
	return n
}

// Occupied is what all files take, bytes.
func (m *MemFS) Occupied() int64 { m.mu.Lock(); defer m.mu.Unlock(); return m.occupied() }

// Below is what the files with a name below dir take, and dir itself.
func (m *MemFS) Below(dir string) (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[*inode]bool{}
	for p, i := range m.names {
		if (p == dir || strings.HasPrefix(p, dir+"/")) && !seen[i] {
			seen[i] = true
			n += i.blocks()
		}
	}
	return n
}

func (m *MemFS) after(op string) {
	if m.After != nil {
		m.After(op, m.occupied())
	}
}

func notExist(op, p string) error { return &os.PathError{Op: op, Path: p, Err: os.ErrNotExist} }

func (m *MemFS) add(p string, dir bool) *inode {
	m.next++
	i := &inode{id: m.next, dir: dir, links: 1}
	m.names[p], m.all[i] = i, true
	return i
}

// Create implements ringstore.FS.
func (m *MemFS) Create(p string) (ringstore.RingFile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p = filepath.ToSlash(p)
	if err := m.op("create", p); err != nil {
		return nil, err
	}
	if m.names[p] != nil {
		return nil, &os.PathError{Op: "create", Path: p, Err: os.ErrExist}
	}
	if d := m.names[path.Dir(p)]; d == nil || !d.dir {
		return nil, notExist("create", p)
	}
	i := m.add(p, false)
	i.open++
	m.after("create")
	return &file{m: m, i: i, p: p, write: true}, nil
}

func (m *MemFS) get(op, p string, write bool) (ringstore.RingFile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p = filepath.ToSlash(p)
	if err := m.op(op, p); err != nil {
		return nil, err
	}
	i := m.names[p]
	if i == nil || i.dir {
		return nil, notExist(op, p)
	}
	i.open++
	return &file{m: m, i: i, p: p, write: write}, nil
}

// Open implements ringstore.FS.
func (m *MemFS) Open(p string) (ringstore.RingFile, error) { return m.get("open", p, true) }

// OpenRead implements ringstore.FS.
func (m *MemFS) OpenRead(p string) (ringstore.RingFile, error) { return m.get("openread", p, false) }

// WriteFile implements ringstore.FS.
func (m *MemFS) WriteFile(p string, b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p = filepath.ToSlash(p)
	if err := m.op("writefile", p); err != nil {
		return err
	}
	if err := m.room(int64(len(b))); err != nil {
		return err
	}
	if old := m.names[p]; old != nil {
		old.links--
	}
	i := m.add(p, false)
	i.data = append([]byte(nil), b...)
	i.synced = append([]byte(nil), b...)
	m.durable[p] = i
	m.after("writefile")
	return nil
}

func (m *MemFS) room(n int64) error {
	if m.Capacity > 0 && m.occupied()+m.Foreign+(n+Block-1)/Block*Block > m.Capacity {
		return syscall.ENOSPC
	}
	return nil
}

// Remove implements ringstore.FS.
func (m *MemFS) Remove(p string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p = filepath.ToSlash(p)
	if err := m.op("remove", p); err != nil {
		return err
	}
	i := m.names[p]
	if i == nil {
		return notExist("remove", p)
	}
	delete(m.names, p)
	delete(m.durable, p)
	i.links--
	return nil
}

// RemoveDir implements ringstore.FS.
func (m *MemFS) RemoveDir(p string) error {
	m.mu.Lock()
	for n := range m.names {
		if strings.HasPrefix(n, filepath.ToSlash(p)+"/") {
			m.mu.Unlock()
			return &os.PathError{Op: "rmdir", Path: p, Err: syscall.ENOTEMPTY}
		}
	}
	m.mu.Unlock()
	return m.Remove(p)
}

// Link implements ringstore.FS.
func (m *MemFS) Link(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, to = filepath.ToSlash(from), filepath.ToSlash(to)
	if err := m.op("link", to); err != nil {
		return err
	}
	i := m.names[from]
	if i == nil {
		return notExist("link", from)
	}
	if m.names[to] != nil {
		return &os.PathError{Op: "link", Path: to, Err: os.ErrExist}
	}
	m.names[to] = i
	i.links++
	return nil
}

// Mkdir implements ringstore.FS.
func (m *MemFS) Mkdir(p string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p = filepath.ToSlash(p)
	if err := m.op("mkdir", p); err != nil {
		return err
	}
	for p != "/" && p != "." && m.names[p] == nil {
		m.durable[p] = m.add(p, true)
		p = path.Dir(p)
	}
	m.after("mkdir")
	return nil
}

// ReadDir implements ringstore.FS.
func (m *MemFS) ReadDir(p string) ([]ringstore.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p = filepath.ToSlash(p)
	if err := m.op("readdir", p); err != nil {
		return nil, err
	}
	if m.names[p] == nil {
		return nil, notExist("readdir", p)
	}
	var out []ringstore.Info
	for n, i := range m.names {
		if path.Dir(n) == p && n != p {
			out = append(out, m.info(n, i))
		}
	}
	sort.Slice(out, func(a, b int) bool { return out[a].Name < out[b].Name })
	return out, nil
}

func (m *MemFS) info(p string, i *inode) ringstore.Info {
	return ringstore.Info{Name: path.Base(p), Dir: i.dir, Size: int64(len(i.data)), Blocks: i.blocks(),
		ID: ringstore.FileID{Dev: 1, Ino: i.id}, Links: i.links}
}

// SyncDir implements ringstore.FS.
func (m *MemFS) SyncDir(p string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p = filepath.ToSlash(p)
	if err := m.op("syncdir", p); err != nil {
		return err
	}
	for n, i := range m.names {
		if path.Dir(n) == p {
			m.durable[n] = i
		}
	}
	return nil
}

// Free implements ringstore.FS.
func (m *MemFS) Free(string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Capacity == 0 {
		return 1 << 60, nil
	}
	return max(m.Capacity-m.Foreign-m.occupied(), 0), nil
}

// Kill closes all files, as the end of the process does.
func (m *MemFS) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.all {
		i.open, i.shared, i.locked = 0, 0, false
	}
}

// PowerLoss is Kill, and of what was not synced a part is gone: tails are cut or not what was written, names may be
// missing.
func (m *MemFS) PowerLoss(r *rand.Rand) {
	m.Kill()
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for p := range m.names {
		names = append(names, p)
	}
	sort.Strings(names) // the same seed, the same loss
	for _, p := range names {
		i := m.names[p]
		if m.durable[p] != i {
			if r.IntN(2) != 0 {
				delete(m.names, p)
				i.links--
				continue
			}
			m.durable[p] = i
		}
	}
	var all []*inode
	for i := range m.all {
		all = append(all, i)
	}
	sort.Slice(all, func(a, b int) bool { return all[a].id < all[b].id })
	for _, i := range all {
		n := len(i.synced)
		if i.dir || len(i.data) <= n {
			continue
		}
		keep := n + r.IntN(len(i.data)-n+1)
		i.data = append([]byte(nil), i.data[:keep]...)
		if r.IntN(2) == 0 { // the length was written, the data was not
			clear(i.data[n+r.IntN(keep-n+1):])
		}
		i.synced = append([]byte(nil), i.data...)
	}
}

// Read gives a copy of a file's content.
func (m *MemFS) Read(p string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.names[filepath.ToSlash(p)]
	if i == nil {
		return nil, false
	}
	return append([]byte(nil), i.data...), true
}

// Put makes or replaces a file, synced, without any check.
func (m *MemFS) Put(p string, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.names[p]
	if i == nil {
		i = m.add(p, false)
	}
	i.data = append([]byte(nil), b...)
	i.synced = append([]byte(nil), b...)
	m.durable[p] = i
}
