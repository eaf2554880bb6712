package main

import (
	"io"
	"iter"
	"slices"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/web"
)

// follower reads a ring folder to its end, and later what was added. Next gives io.EOF at the end, and continues when
// it is called again. It reads a frame once: a file of the ring only grows, and later files have higher numbers.
type follower struct {
	path   string
	reader func(...*ringstore.File) *source
	from   blocksFrom
	rec    *ringstore.Recording // nil: at the end
	src    *source
	oldest uint64 // the first collection of the recording
	// of what was read: the newest file's number, and the offset behind it
	file uint64
	at   int64
}

// blocksFrom gives the blocks of a file from an offset on, as ringstore.File.BlocksFrom does.
type blocksFrom func(f *ringstore.File, at int64, behind func(at int64)) iter.Seq2[trace.Block, error]

// follow opens the recording at path. progress gets the bytes that are read up to its end, and their total.
func follow(path string, progress func(done, total int64)) (*web.Input, error) {
	return followWith(&follower{path: path, reader: newSource, from: (*ringstore.File).BlocksFrom}, progress)
}

// followCensus is follow for a counting replay.
func followCensus(path string, progress func(done, total int64)) (*web.Input, error) {
	return followWith(&follower{path: path, reader: newCensusSource,
		from: (*ringstore.File).BlocksWithoutTokensFrom}, progress)
}

func followWith(f *follower, progress func(done, total int64)) (*web.Input, error) {
	if err := f.open(progress); err != nil {
		return nil, err
	}
	return &web.Input{Source: f, Problems: f.rec.Problems, Close: f.close,
		Oldest: func() uint64 { return f.oldest }}, nil
}

// open begins a reading. progress may be nil.
func (f *follower) open(progress func(done, total int64)) error {
	rec, err := openStored(f.path)
	if err != nil {
		return err
	}
	if progress != nil {
		watchBytes(rec, progress)
	}
	f.rec = rec
	files := slices.DeleteFunc(slices.Clone(rec.Files), func(r *ringstore.File) bool { return r.Index < f.file })
	f.src = f.reader(files...)
	if len(files) == 0 {
		return nil
	}
	f.oldest = rec.Files[0].Window().FirstGC
	last := files[len(files)-1]
	f.src.of = func(r *ringstore.File) iter.Seq2[trace.Block, error] { return f.blocks(r, r == last) }
	return nil
}

// blocks gives the blocks of a file that were not read. What is damaged at the end of the last file is not complete
// yet: it is left for the next reading.
func (f *follower) blocks(r *ringstore.File, last bool) iter.Seq2[trace.Block, error] {
	return func(yield func(trace.Block, error) bool) {
		if r.Index > f.file {
			f.file, f.at = r.Index, 0
		}
		var damage []error
		pass := func() bool {
			for _, err := range damage {
				if !yield(trace.Block{}, err) {
					return false
				}
			}
			damage = nil
			return true
		}
		for b, err := range f.from(r, f.at, func(at int64) { f.at = at }) {
			if err != nil {
				damage = append(damage, err)
			} else if !pass() || !yield(b, nil) {
				return
			}
		}
		if !last {
			pass()
		}
	}
}

// Next gives the next block, or the error of a damaged section.
func (f *follower) Next() (trace.Block, error) {
	if f.rec == nil && f.open(nil) != nil {
		return trace.Block{}, io.EOF
	}
	b, err := f.src.Next()
	if err == io.EOF {
		f.close()
	}
	return b, err
}

func (f *follower) close() {
	if f.rec != nil {
		f.src.Close()
		f.rec.Close()
		f.rec = nil
	}
}
