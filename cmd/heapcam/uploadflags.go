package main

import (
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/tables"
	"github.com/heapcam/heapcam/agent/upload"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/bucket/s3"
	"github.com/heapcam/heapcam/internal/ui"
)

// uploadOptions say to which bucket an agent uploads incidents.
type uploadOptions struct {
	to, endpoint, region, credentials string
	rate                              ui.Size
	redact                            bool
	tables                            time.Duration
}

func (o *uploadOptions) add(f *pflag.FlagSet) {
	bind(f, "upload", &o.to)
	bind(f, "upload_endpoint", &o.endpoint)
	bind(f, "upload_region", &o.region)
	bind(f, "upload_credentials", &o.credentials)
	bind(f, "upload_rate", &o.rate)
	bind(f, "upload_redact", &o.redact)
	bind(f, "upload_tables", &o.tables)
}

func (o *uploadOptions) server() s3.Options {
	return s3.Options{Endpoint: o.endpoint, Region: o.region, Credentials: o.credentials, Rate: int64(o.rate)}
}

// check finds wrong settings before the agent starts.
func (o *uploadOptions) check() error {
	if o.tables != 0 && (o.tables < time.Minute || o.tables > 24*time.Hour) {
		return usage("--upload-tables %v: it must be 0 (no tables), or from 1m to 24h", o.tables)
	}
	if o.to == "" {
		if o.endpoint+o.region+o.credentials != "" || o.rate != 0 || o.redact || o.tables != 0 {
			return usage("--upload-endpoint and the like need --upload s3://NAME")
		}
		return nil
	}
	at, err := bucket.Parse(o.to)
	if err != nil {
		return usage("--upload: %w", err)
	}
	if o.credentials != "" {
		if err := api.CheckSecret(o.credentials); err != nil {
			return usage("--upload-credentials: %w", err)
		}
	}
	if _, err := s3.Dial(at.Bucket, o.server()); err != nil {
		return usage("--upload-endpoint: %w", err)
	}
	return nil
}

// config is what the agent gets; nil: it uploads nothing.
func (o *uploadOptions) config() *upload.Config {
	at, err := bucket.Parse(o.to)
	if o.to == "" || err != nil { // checked before
		return nil
	}
	to, err := s3.Dial(at.Bucket, o.server())
	if err != nil {
		return nil
	}
	host, _ := os.Hostname()
	return &upload.Config{To: at, Bucket: to, Host: host, Redact: o.redact}
}

// tablesOf is what the agent gets for tables, which use the connection of up; nil: it writes none.
func (o *uploadOptions) tablesOf(up *upload.Config) *tables.Config {
	if up == nil || o.tables == 0 {
		return nil
	}
	return &tables.Config{Every: o.tables, To: up.To, Bucket: up.Bucket, Host: up.Host, Redact: up.Redact}
}
