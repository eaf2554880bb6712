package main

import (
	"context"
	"fmt"
	"io"
	"os"
	pathpkg "path"
	"path/filepath"
	"time"

	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/bucket/s3"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// uploaded ends the name of each incident and pull in a bucket.
const uploaded = ".heapcam"

// openStored opens a file, a folder, or an object of a bucket (s3://BUCKET/KEY), of which only what is needed is read.
func openStored(name string) (*ringstore.Recording, error) {
	if !bucket.Is(name) {
		return ringstore.OpenRecording(name)
	}
	c, at, err := dialBucket(name)
	if err != nil {
		return nil, err
	}
	if at.Key == "" {
		return nil, usage("%s names a bucket: name an object of it, as `heapcam incidents %s` lists them", name, name)
	}
	o, err := c.Open(context.Background(), at.Key)
	if err != nil {
		return nil, err
	}
	return ringstore.OpenContainer(name, o, o.Size())
}

// dialBucket gives the bucket that a name is of. Server and credentials are those of the environment.
func dialBucket(name string) (*s3.Client, bucket.Location, error) {
	at, err := bucket.Parse(name)
	if err != nil {
		return nil, at, usage("%w", err)
	}
	c, err := s3.Dial(at.Bucket, s3.Options{})
	return c, at, err
}

// putPull stores in a bucket what write writes.
func putPull(ctx context.Context, name string, write func(io.Writer) error) error {
	c, at, err := dialBucket(name)
	if err != nil {
		return err
	}
	if at.Key == "" || at.Key[len(at.Key)-1] == '/' {
		return usage("pull: %s names no object: add one, such as incident.heapcam", name)
	}
	_, err = c.Put(ctx, at.Key, write, bucket.Put{})
	return err
}

// fetch copies an object of a bucket as it is.
func (o *pullOptions) fetch(ctx context.Context, name string) (err error) {
	if o.remote.address != "" || o.incident != "" || o.exact || o.redact || bucket.Is(o.file) ||
		o.last != (ui.Span{}) || !o.since.IsZero() || !o.until.IsZero() {
		return usage("pull: from a bucket it copies whole objects to a file or to stdout")
	}
	c, at, err := dialBucket(name)
	if err != nil {
		return err
	}
	from, err := c.Open(ctx, at.Key)
	if err != nil {
		return err
	}
	if err := fits(name, from.Size(), o.file); err != nil {
		return err
	}
	to, end, err := output(o.file)
	if err != nil {
		return err
	}
	p := ui.NewProgress("pulling")
	_, err = io.Copy(&reporting{to, p, 0, from.Size()}, io.NewSectionReader(from, 0, from.Size()))
	p.Done()
	if err = end(err); err != nil {
		return err
	}
	ui.Fprintf(ui.Stderr, "heapcam: pulled %s from %s, in %s\n", ui.Bytes(from.Size()), name, ui.Duration(p.Spent()))
	return nil
}

// fits says whether the disk of a file has room for so many bytes of what name names. Not all that can be written to
// is a file.
func fits(name string, size int64, file string) error {
	if st, err := os.Stat(file); file == "-" || err == nil && !st.Mode().IsRegular() {
		return nil
	}
	if free, err := ringstore.OS.Free(filepath.Dir(file)); err == nil && free >= 0 && size > free {
		return fmt.Errorf("%s has %s, and the disk of %s has room for %s", name, ui.Bytes(size), file, ui.Bytes(free))
	}
	return nil
}

// reporting shows the progress of what is written.
type reporting struct {
	w           io.Writer
	p           *ui.Progress
	done, total int64
}

func (r *reporting) Write(b []byte) (int, error) {
	n, err := r.w.Write(b)
	r.done += int64(n)
	r.p.At(r.done, r.total)
	return n, err
}

// inBucket is an incident in a bucket.
type inBucket struct {
	Name     string    `json:"name"` // s3://BUCKET/KEY
	Bytes    int64     `json:"bytes"`
	Uploaded time.Time `json:"uploaded"` // when the bucket got it
}

// bucketReply is what `heapcam incidents s3://… --json` prints.
type bucketReply struct {
	ui.Envelope
	Objects []inBucket `json:"objects"`
}

// listBucket prints the incidents and pulls of a bucket.
func listBucket(ctx context.Context, out io.Writer, name string, asJSON bool) error {
	c, at, err := dialBucket(name)
	if err != nil {
		return err
	}
	reply := bucketReply{ui.NewEnvelope("bucket", 1), []inBucket{}}
	err = c.List(ctx, at.Key, func(i bucket.Item) bool {
		if pathpkg.Ext(i.Key) == uploaded {
			name := bucket.Location{Bucket: at.Bucket, Key: i.Key}.String()
			reply.Objects = append(reply.Objects, inBucket{name, i.Size, i.Modified})
		}
		return true
	})
	switch {
	case err != nil:
		return err
	case asJSON:
		return ui.JSON(out, reply)
	case len(reply.Objects) == 0:
		ui.Fprintf(ui.Stderr, "heapcam: there are no incidents (*%s) in %s\n", uploaded, name)
		return nil
	}
	w := ui.NewTable(out)
	ui.Fprintf(w, "UPLOADED\tSIZE\tINCIDENT\n")
	for _, o := range reply.Objects {
		ui.Fprintf(w, "%s\t%s\t%s\n", ui.Time(o.Uploaded), ui.Bytes(o.Bytes), o.Name)
	}
	return w.Flush()
}
