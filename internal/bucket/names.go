package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Scheme begins the name of an object: s3://BUCKET/KEY.
const Scheme = "s3://"

var (
	// ErrExists says that there is an object with this key.
	ErrExists = errors.New("there is such an object")
	// ErrDiffers says that the server has stored something else than was sent.
	ErrDiffers = errors.New("the bucket has stored something else than was sent")
)

// Location is a bucket, and a key or the beginning of keys in it.
type Location struct{ Bucket, Key string }

func (l Location) String() string { return Scheme + l.Bucket + "/" + l.Key }

// Is says whether a name is that of an object, as opposed to a file.
func Is(name string) bool { return strings.HasPrefix(name, Scheme) }

// Parse reads s3://BUCKET[/KEY]. A key of more than 900 bytes, or with parts like "..", is an error.
func Parse(name string) (Location, error) {
	rest, ok := strings.CutPrefix(name, Scheme)
	bucket, key, _ := strings.Cut(rest, "/")
	switch {
	case !ok:
		return Location{}, fmt.Errorf("%q is not like s3://BUCKET/NAME", name)
	case len(bucket) < 3 || len(bucket) > 63 || strings.Trim(bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "":
		return Location{}, fmt.Errorf("%q: %q is no name of a bucket: 3 to 63 lower-case letters, digits, dots and "+
			"dashes", name, bucket)
	case len(key) > 900:
		return Location{}, fmt.Errorf("%q: the name in the bucket has more than 900 bytes", name)
	}
	for _, part := range strings.Split(key, "/") {
		if part == "." || part == ".." {
			return Location{}, fmt.Errorf("%q: the name in the bucket contains %q", name, part)
		}
	}
	return Location{bucket, key}, nil
}

// Plain makes a name one that every server takes as one part of a key.
func Plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, s)
	if s = strings.Trim(s[:min(len(s), 200)], "."); s == "" {
		return "_"
	}
	return s
}

// PartSize is what a part of a large object has, bytes. An object has at most 10,000 parts, 156 GiB.
const PartSize = 16 << 20

// Put says how an object is put.
type Put struct {
	// Resume is the upload of an earlier try, "": none. Parts that the server has already are not sent again.
	Resume string
	// Begun gets the upload before its first part is sent, so that a later try can resume it. nil: nobody wants it.
	Begun func(upload string) error
	// Progress gets how many bytes were sent in this try, after each part.
	Progress func(sent int64)
	// Type is the media type of the object; "": application/x-tar, which a recording is.
	Type string
	// Metadata is kept with the object. Keys are ASCII.
	Metadata map[string]string
}

// Done is what Put did.
type Done struct {
	Bytes int64 // of the object
	Sent  int64 // of them, in this try
}

// Item is an object as a list has it.
type Item struct {
	Key      string
	Size     int64
	Modified time.Time
}

// Bucket is what a program that puts files into a bucket needs of it.
//
// Concurrency: any method at any time. Errors: ErrExists, ErrDiffers, os.ErrNotExist, os.ErrPermission, those of the
// server with its words, and those of the network.
type Bucket interface {
	// Put stores what source writes under key. The source is called once, and must write the same bytes in each try.
	// After an error the upload can be resumed.
	Put(ctx context.Context, key string, source func(io.Writer) error, p Put) (Done, error)

	// Stat describes an object, and gives the metadata that it was put with.
	Stat(ctx context.Context, key string) (Item, map[string]string, error)
}
