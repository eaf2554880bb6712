package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/minio/minio-go/v7"

	"github.com/heapcam/heapcam/internal/bucket"
)

const (
	blockSize   = 4 << 20
	cacheBlocks = 16
)

// List gives the objects whose keys begin with prefix, by key, in pages. It ends when each returns false.
func (c *Client) List(ctx context.Context, prefix string, each func(bucket.Item) bool) error {
	for token := ""; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := c.core.ListObjectsV2(c.bucket, prefix, "", token, "", 1000)
		if err != nil {
			return c.explained(prefix, err)
		}
		for _, o := range l.Contents {
			if !each(bucket.Item{Key: o.Key, Size: o.Size, Modified: o.LastModified}) {
				return nil
			}
		}
		if !l.IsTruncated || l.NextContinuationToken == "" || l.NextContinuationToken == token {
			return nil
		}
		token = l.NextContinuationToken
	}
}

// Stat gives the metadata that an object was put with. Errors: os.ErrNotExist.
func (c *Client) Stat(ctx context.Context, key string) (bucket.Item, map[string]string, error) {
	st, err := c.core.StatObject(ctx, c.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return bucket.Item{}, nil, c.explained(key, err)
	}
	return bucket.Item{Key: key, Size: st.Size, Modified: st.LastModified}, st.UserMetadata, nil
}

// Object is an object that is read in ranges of 4 MiB, of which the last 16 are kept.
//
// Owner: who opened it. Concurrency: ReadAt by several goroutines at once. Errors: those of the server and of the
// network, with the name; an object that was replaced meanwhile is an error.
type Object struct {
	c    *Client
	key  string
	etag string
	size int64
	ctx  context.Context

	mu     sync.Mutex
	blocks map[int64]*block
	clock  int64
}

type block struct {
	used  int64
	ready chan struct{}
	b     []byte
	err   error
}

// Open opens an object for reading until ctx is done. Errors: os.ErrNotExist, os.ErrPermission.
func (c *Client) Open(ctx context.Context, key string) (*Object, error) {
	st, err := c.core.StatObject(ctx, c.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return nil, c.explained(key, err)
	}
	if st.Size < 0 {
		return nil, fmt.Errorf("%s: the server does not say its size", bucket.Location{Bucket: c.bucket, Key: key})
	}
	return &Object{c: c, key: key, etag: st.ETag, size: st.Size, ctx: ctx, blocks: map[int64]*block{}}, nil
}

// Size is that of the object, bytes.
func (o *Object) Size() int64 { return o.size }

// ReadAt is that of io.ReaderAt.
func (o *Object) ReadAt(b []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, errors.New("a negative offset")
	}
	for len(b) > 0 {
		if at >= o.size {
			return n, io.EOF
		}
		x := o.block(at / blockSize)
		<-x.ready
		if x.err != nil {
			return n, x.err
		}
		k := copy(b, x.b[at%blockSize:])
		n, at, b = n+k, at+int64(k), b[k:]
	}
	return n, nil
}

// block gives a range, and has it read if it is not there. It has the next one read, too, if the one before is there:
// somebody reads on.
func (o *Object) block(i int64) *block {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.want(i)
	if _, on := o.blocks[i-1]; on && (i+1)*blockSize < o.size {
		o.want(i + 1)
	}
	o.clock++
	x.used = o.clock
	return x
}

func (o *Object) want(i int64) *block {
	if x, ok := o.blocks[i]; ok {
		return x
	}
	for len(o.blocks) >= cacheBlocks {
		oldest := int64(-1)
		for k, x := range o.blocks {
			if oldest < 0 || x.used < o.blocks[oldest].used {
				oldest = k
			}
		}
		delete(o.blocks, oldest)
	}
	o.clock++
	x := &block{used: o.clock, ready: make(chan struct{})}
	o.blocks[i] = x
	go func() {
		defer close(x.ready)
		x.b, x.err = o.read(i*blockSize, min(blockSize, o.size-i*blockSize))
		if x.err != nil {
			o.mu.Lock()
			if o.blocks[i] == x {
				delete(o.blocks, i) // the next read tries again
			}
			o.mu.Unlock()
		}
	}()
	return x
}

func (o *Object) read(at, n int64) ([]byte, error) {
	var opt minio.GetObjectOptions
	if err := opt.SetRange(at, at+n-1); err != nil {
		return nil, err
	}
	if err := opt.SetMatchETag(o.etag); err != nil {
		return nil, err
	}
	body, _, _, err := o.c.core.GetObject(o.ctx, o.c.bucket, o.key, opt)
	if err != nil {
		return nil, o.c.explained(o.key, err)
	}
	defer body.Close()
	b := make([]byte, n)
	if _, err := io.ReadFull(body, b); err != nil {
		return nil, fmt.Errorf("%s: %w", bucket.Location{Bucket: o.c.bucket, Key: o.key}, err)
	}
	return b, nil
}
