package faultfs

import (
	"context"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Op is an operation of the file system.
type Op string

// Operations.
const (
	Create   Op = "create" // a file, or opening one to write
	Open     Op = "open"   // a file to read
	Read     Op = "read"   // what the kernel has not kept
	Write    Op = "write"
	Fsync    Op = "fsync" // of files and of folders' changes alike
	Truncate Op = "truncate"
	Allocate Op = "allocate"
	Unlink   Op = "unlink"
	Rename   Op = "rename"
	Link     Op = "link"
	Mkdir    Op = "mkdir"
)

// Mount is a mounted file system.
type Mount struct {
	Dir     string // where it is mounted
	Backing string // the folder below it, which never fails

	mu   sync.Mutex
	fail func(op Op, name string) syscall.Errno
}

// New mounts a file system over an empty folder until the test ends; it skips the test where that is not possible.
func New(t testing.TB) *Mount {
	t.Helper()
	m := &Mount{Dir: t.TempDir(), Backing: t.TempDir()}
	var st syscall.Stat_t
	if err := syscall.Stat(m.Backing, &st); err != nil {
		t.Fatal(err)
	}
	data := &fs.LoopbackRoot{Path: m.Backing, Dev: uint64(st.Dev)}
	root := &node{&fs.LoopbackNode{RootData: data}, m}
	data.RootNode = root
	srv, err := fs.Mount(m.Dir, root,
		&fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "faultfs", Name: "faultfs"}})
	if err != nil {
		t.Skipf("not run: FUSE cannot be mounted (root, /dev/fuse): %v", err)
	}
	t.Cleanup(func() {
		m.Fail(nil)
		if err := srv.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
			_ = syscall.Unmount(m.Dir, syscall.MNT_DETACH)
		}
		srv.Wait()
	})
	return m
}

// Fail decides from now on which operations fail: f is asked before each, by several goroutines at once, with the path
// of what it changes, below Dir, and gives the error, or 0. It may take its time: a slow disk. nil: none fails.
func (m *Mount) Fail(f func(op Op, name string) syscall.Errno) {
	m.mu.Lock()
	m.fail = f
	m.mu.Unlock()
}

func (m *Mount) ask(op Op, path string) syscall.Errno {
	m.mu.Lock()
	f := m.fail
	m.mu.Unlock()
	if f == nil {
		return 0
	}
	return f(op, path)
}

type node struct {
	*fs.LoopbackNode
	m *Mount
}

// WrapChild makes each file and folder one of ours.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{ops.(*fs.LoopbackNode), n.m}
}

// file keeps the kernel from going past us to the file below.
type file struct{ *fs.LoopbackFile }

// PassthroughFd hides the one that the kernel would be given.
func (file) PassthroughFd() {}

func through(f fs.FileHandle) fs.FileHandle {
	if l, ok := f.(*fs.LoopbackFile); ok {
		return file{l}
	}
	return f
}

func (n *node) name() string { return n.Path(n.Root()) }

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode,
	fs.FileHandle, uint32, syscall.Errno) {
	if e := n.m.ask(Create, filepath.Join(n.name(), name)); e != 0 {
		return nil, nil, 0, e
	}
	i, f, more, e := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return i, through(f), more, e
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	op := Open
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		op = Create
	}
	if e := n.m.ask(op, n.name()); e != 0 {
		return nil, 0, e
	}
	f, more, e := n.LoopbackNode.Open(ctx, flags)
	return through(f), more, e
}

func (n *node) Read(ctx context.Context, f fs.FileHandle, b []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if e := n.m.ask(Read, n.name()); e != 0 {
		return nil, e
	}
	return f.(fs.FileReader).Read(ctx, b, off)
}

func (n *node) Write(ctx context.Context, f fs.FileHandle, b []byte, off int64) (uint32, syscall.Errno) {
	if e := n.m.ask(Write, n.name()); e != 0 {
		return 0, e
	}
	return f.(fs.FileWriter).Write(ctx, b, off)
}

func (n *node) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	if e := n.m.ask(Fsync, n.name()); e != 0 {
		return e
	}
	return f.(fs.FileFsyncer).Fsync(ctx, flags)
}

func (n *node) Allocate(ctx context.Context, f fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	if e := n.m.ask(Allocate, n.name()); e != 0 {
		return e
	}
	return f.(fs.FileAllocater).Allocate(ctx, off, size, mode)
}

func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if _, ok := in.GetSize(); ok {
		if e := n.m.ask(Truncate, n.name()); e != 0 {
			return e
		}
	}
	return n.LoopbackNode.Setattr(ctx, f, in, out)
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	if e := n.m.ask(Unlink, filepath.Join(n.name(), name)); e != 0 {
		return e
	}
	return n.LoopbackNode.Unlink(ctx, name)
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	if e := n.m.ask(Unlink, filepath.Join(n.name(), name)); e != 0 {
		return e
	}
	return n.LoopbackNode.Rmdir(ctx, name)
}

func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, to string,
	flags uint32) syscall.Errno {
	if e := n.m.ask(Rename, filepath.Join(n.name(), to)); e != 0 {
		return e
	}
	return n.LoopbackNode.Rename(ctx, name, parent, to, flags)
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode,
	syscall.Errno) {
	if e := n.m.ask(Link, filepath.Join(n.name(), name)); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Link(ctx, target, name, out)
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if e := n.m.ask(Mkdir, filepath.Join(n.name(), name)); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Mkdir(ctx, name, mode, out)
}
