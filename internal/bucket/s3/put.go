package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/crc64nvme"
	"github.com/minio/minio-go/v7"

	"github.com/heapcam/heapcam/internal/bucket"
)

const maxParts = 10_000

// Put is that of bucket.Bucket.
func (c *Client) Put(ctx context.Context, key string, source func(io.Writer) error, p bucket.Put) (bucket.Done,
	error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r, w := io.Pipe()
	ended := make(chan struct{})
	defer func() { <-ended }()
	defer r.Close()
	go func() {
		defer close(ended)
		w.CloseWithError(source(w))
	}()
	u := &upload{c: c, key: key, p: p, crc: crc64nvme.New()}
	buf := make([]byte, bucket.PartSize)
	n, err := io.ReadFull(r, buf)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = u.small(ctx, buf[:n])
	case err == nil:
		err = u.large(ctx, r, buf)
	}
	if err != nil {
		return u.done, err
	}
	return u.done, u.compare(ctx)
}

// upload is one Put that is under way.
type upload struct {
	c    *Client
	key  string
	p    bucket.Put
	done bucket.Done
	crc  hash.Hash64
	sums []byte // MD5 of each part; of a small object: of it
	n    int    // parts; 0: a small object
}

func (u *upload) options() minio.PutObjectOptions {
	o := minio.PutObjectOptions{UserMetadata: u.p.Metadata,
		ContentType: cmp.Or(u.p.Type, "application/x-tar")}
	o.SetMatchETagExcept("*")
	return o
}

func (u *upload) name() bucket.Location { return bucket.Location{Bucket: u.c.bucket, Key: u.key} }

// small puts an object of less than a part.
func (u *upload) small(ctx context.Context, b []byte) error {
	sum := md5.Sum(b)
	u.sums = sum[:]
	u.crc.Write(b)
	u.done.Bytes = int64(len(b))
	err := again(ctx, func() error {
		_, err := u.c.once.PutObject(ctx, u.c.bucket, u.key, bytes.NewReader(b), int64(len(b)),
			base64.StdEncoding.EncodeToString(sum[:]), "", u.options())
		return err
	})
	if err == nil {
		u.done.Sent = u.done.Bytes
	}
	return u.c.explained(u.key, err)
}

// large puts an object in parts. buf holds the first one.
func (u *upload) large(ctx context.Context, r io.Reader, buf []byte) error {
	id, have, err := u.begin(ctx)
	if err != nil {
		return err
	}
	var parts []minio.CompletePart
	for n, last := len(buf), false; n > 0; {
		sum := md5.Sum(buf[:n])
		u.n++
		if u.n > maxParts {
			return fmt.Errorf("%s: more than %d parts of 16 MiB", u.name(), maxParts)
		}
		u.sums = append(u.sums, sum[:]...)
		u.crc.Write(buf[:n])
		u.done.Bytes += int64(n)
		etag := hex.EncodeToString(sum[:])
		if h, ok := have[u.n]; !ok || h.Size != int64(n) || strings.Trim(h.ETag, `"`) != etag {
			var got minio.ObjectPart
			if err := again(ctx, func() (err error) {
				got, err = u.c.once.PutObjectPart(ctx, u.c.bucket, u.key, id, u.n, bytes.NewReader(buf[:n]), int64(n),
					minio.PutObjectPartOptions{Md5Base64: base64.StdEncoding.EncodeToString(sum[:])})
				return err
			}); err != nil {
				return u.c.explained(u.key, err)
			}
			etag = got.ETag
			u.done.Sent += int64(n)
			if u.p.Progress != nil {
				u.p.Progress(u.done.Sent)
			}
		}
		parts = append(parts, minio.CompletePart{PartNumber: u.n, ETag: etag})
		if last {
			break
		}
		n, err = io.ReadFull(r, buf)
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
	}
	_, err = u.c.core.CompleteMultipartUpload(ctx, u.c.bucket, u.key, id, parts, u.options())
	return u.c.explained(u.key, err)
}

// tries is how often a request is sent if the connection or the server fails.
const tries = 3

// again sends a request with a body up to tries times, each time with a reader of its own. minio-go would use the same
// reader again, from which the connection that failed may still read.
func again(ctx context.Context, send func() error) error {
	for n := 1; ; n++ {
		err := send()
		if err == nil || n == tries || ctx.Err() != nil {
			return err
		}
		switch minio.ToErrorResponse(err).StatusCode {
		case 0, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(n) * 200 * time.Millisecond):
		}
	}
}

// begin continues the upload of an earlier try if the server still has it, or begins one.
func (u *upload) begin(ctx context.Context) (id string, have map[int]minio.ObjectPart, err error) {
	if id = u.p.Resume; id != "" {
		if have, err = u.parts(ctx, id); err == nil {
			return id, have, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", nil, err
		}
	}
	if id, err = u.c.core.NewMultipartUpload(ctx, u.c.bucket, u.key, u.options()); err != nil {
		return "", nil, u.c.explained(u.key, err)
	}
	if u.p.Begun != nil {
		err = u.p.Begun(id)
	}
	return id, nil, err
}

// parts gives what the server has of an upload.
func (u *upload) parts(ctx context.Context, id string) (map[int]minio.ObjectPart, error) {
	have := map[int]minio.ObjectPart{}
	for after := 0; ; {
		l, err := u.c.core.ListObjectParts(ctx, u.c.bucket, u.key, id, after, 1000)
		if err != nil {
			return nil, u.c.explained(u.key, err)
		}
		for _, p := range l.ObjectParts {
			have[p.PartNumber] = p
		}
		if !l.IsTruncated || l.NextPartNumberMarker <= after || len(have) > maxParts {
			return have, nil
		}
		after = l.NextPartNumberMarker
	}
}

// compare asks the server what it has stored.
func (u *upload) compare(ctx context.Context) error {
	o := minio.StatObjectOptions{Checksum: true}
	st, err := u.c.core.StatObject(ctx, u.c.bucket, u.key, o)
	if err != nil {
		return u.c.explained(u.key, err)
	}
	if st.Size != u.done.Bytes {
		return fmt.Errorf("%s: %w: it has %d bytes instead of %d", u.name(), bucket.ErrDiffers, st.Size,
			u.done.Bytes)
	}
	if sum := st.ChecksumCRC64NVME; sum != "" {
		if sum == base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, u.crc.Sum64())) {
			return nil
		}
	} else if want := u.etag(); strings.Trim(st.ETag, `"`) == want || len(st.ETag) != len(want) {
		return nil // an ETag of another form, as encrypting servers give it, says nothing: each part had its MD5
	}
	return fmt.Errorf("%s: %w: its checksum is another one", u.name(), bucket.ErrDiffers)
}

// etag is what servers call an object that they do not encrypt.
func (u *upload) etag() string {
	if u.n == 0 {
		return hex.EncodeToString(u.sums)
	}
	sum := md5.Sum(u.sums)
	return fmt.Sprintf("%x-%d", sum, u.n)
}
