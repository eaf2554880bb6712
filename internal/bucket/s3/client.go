package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/time/rate"

	"github.com/heapcam/heapcam/internal/bucket"
)

const (
	// chunk is how many bytes go out at once where the rate is limited.
	chunk = 32 << 10
)

// idleLimit is how long a connection may be silent before it is given up.
var idleLimit = time.Minute

// Options say which server, and as whom. Zero values take what AWS's own tools take: AWS_ENDPOINT_URL_S3,
// AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, the credentials of the environment, of ~/.aws/credentials and of
// the machine.
type Options struct {
	// Endpoint is the URL of the server, https or http; "": AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or Amazon's.
	Endpoint, Region string
	// Credentials is a file in the format of ~/.aws/credentials.
	Credentials string
	// Rate bounds what is sent, bytes per second; 0: no bound.
	Rate int64
}

// Client is a connection to a bucket.
//
// Owner: who dialled it; there is nothing to close. Concurrency and errors: those of bucket.Bucket.
type Client struct {
	core   *minio.Core
	once   *minio.Core // sends each request once: for those with a body
	bucket string
}

// Dial prepares a connection to the bucket. It sends nothing.
func Dial(bucket string, o Options) (*Client, error) {
	region := cmp.Or(o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	raw := cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"),
		"https://s3."+region+".amazonaws.com")
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, fmt.Errorf("the endpoint of the bucket is not like https://HOST[:PORT]")
	}
	creds := []credentials.Provider{&credentials.EnvAWS{}, &file{}, &credentials.IAM{}}
	if o.Credentials != "" {
		creds = []credentials.Provider{&file{name: o.Credentials}}
	}
	opt := minio.Options{Creds: credentials.NewChainCredentials(creds), Secure: u.Scheme == "https", Region: region,
		Transport: transport(o.Rate), MaxRetries: tries}
	core, err := minio.NewCore(u.Host, &opt)
	if err != nil {
		return nil, err
	}
	opt.MaxRetries = 1
	once, err := minio.NewCore(u.Host, &opt)
	if err != nil {
		return nil, err
	}
	return &Client{core, once, bucket}, nil
}

// transport gives up silent servers, and bounds the rate of what is sent over all its connections.
func transport(bytesPerSecond int64) http.RoundTripper {
	var limit *rate.Limiter
	if bytesPerSecond > 0 {
		limit = rate.NewLimiter(rate.Limit(bytesPerSecond), chunk)
	}
	silent := idleLimit
	if bytesPerSecond > 0 {
		silent += time.Duration(float64(chunk) / float64(bytesPerSecond) * float64(time.Second))
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	return bounded{&http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := d.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: c, limit: limit, silent: silent}, nil
		},
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: idleLimit, IdleConnTimeout: idleLimit,
		MaxIdleConnsPerHost: 2, ForceAttemptHTTP2: false, DisableCompression: true,
	}}
}

// mostAnswer bounds what a server answers: objects are read in ranges of blockSize, and lists come in pages.
const mostAnswer = 16 << 20

// errAnswer says that an answer is longer.
var errAnswer = fmt.Errorf("the server's answer is longer than %d MiB, which no answer here can be", mostAnswer>>20)

// bounded ends answers that are longer than mostAnswer with errAnswer: what reads them keeps them in memory.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if a.ContentLength > mostAnswer && r.Method != http.MethodHead {
		a.Body.Close()
		return nil, errAnswer
	}
	a.Body = &boundedBody{a.Body, mostAnswer}
	return a, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errAnswer
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// conn fails when nothing came from the other side, and nothing went there, for silent.
type conn struct {
	net.Conn
	limit  *rate.Limiter
	silent time.Duration
}

func (c *conn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silent)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *conn) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		part := b[:min(len(b), chunk)]
		if c.limit != nil {
			if err := c.limit.WaitN(context.Background(), len(part)); err != nil {
				return n, err
			}
		}
		// A read waits for the answer meanwhile: while there is progress it has time, too.
		if err := c.SetDeadline(time.Now().Add(c.silent)); err != nil {
			return n, err
		}
		var k int
		k, err = c.Conn.Write(part)
		n, b = n+k, b[k:]
	}
	return n, err
}

// explained gives an error of the server as one of the system where there is one, with the server's words.
func (c *Client) explained(key string, err error) error {
	if err == nil {
		return nil
	}
	name := bucket.Location{Bucket: c.bucket, Key: key}
	var said minio.ErrorResponse
	if !errors.As(err, &said) {
		return fmt.Errorf("%s: %w", name, err)
	}
	kind := error(nil)
	switch {
	case said.StatusCode == http.StatusPreconditionFailed, said.Code == "PreconditionFailed":
		kind = bucket.ErrExists
	case said.StatusCode == http.StatusNotFound:
		kind = os.ErrNotExist
	case said.StatusCode == http.StatusForbidden, said.StatusCode == http.StatusUnauthorized:
		kind = os.ErrPermission
	}
	words := fmt.Sprintf("the server says: %s", cmp.Or(said.Message, said.Code, http.StatusText(said.StatusCode)))
	if kind == nil {
		return fmt.Errorf("%s: %s", name, words)
	}
	return fmt.Errorf("%s: %w; %s", name, kind, words)
}
