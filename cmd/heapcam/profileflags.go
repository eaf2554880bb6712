package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/profiles"
)

// profileOptions say where profiles of the heap go.
type profileOptions struct {
	url, format, credentials, tenant string
	interval                         time.Duration
	scrape                           bool
}

func (o *profileOptions) add(f *pflag.FlagSet) {
	bind(f, "profiles_url", &o.url)
	bind(f, "profiles_format", &o.format)
	bind(f, "profiles_scrape", &o.scrape)
	bind(f, "profiles_interval", &o.interval)
	bind(f, "profiles_credentials", &o.credentials)
	bind(f, "profiles_tenant", &o.tenant)
}

// check finds wrong settings before the agent starts. metrics is the address at which profiles are served.
func (o *profileOptions) check(metrics string) error {
	if o.interval < 10*time.Second || o.interval > time.Hour {
		return usage("--profiles-interval %v: it must be from 10s to 1h", o.interval)
	}
	if o.format != "pyroscope" && o.format != "otlp" {
		return usage("--profiles-format %s: it must be pyroscope or otlp", o.format)
	}
	if o.scrape && metrics == "" {
		return usage("--profiles-scrape needs --metrics ADDRESS")
	}
	if o.url == "" {
		if o.credentials+o.tenant != "" {
			return usage("--profiles-credentials and --profiles-tenant need --profiles-url")
		}
		return nil
	}
	u, err := url.Parse(o.url)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return usage("--profiles-url: it must be like https://pyroscope.example:4040")
	case u.User != nil:
		return usage("--profiles-url: put user and password into a file, and name it by --profiles-credentials")
	case u.RawQuery != "" || u.Fragment != "":
		return usage("--profiles-url: it must have no query and no fragment")
	}
	if o.credentials != "" {
		if _, err := o.secret(); err != nil {
			return usage("--profiles-credentials: %w", err)
		}
	}
	return nil
}

// maxSecret bounds a file of credentials, bytes.
const maxSecret = 16 << 10

// secret reads the credentials.
func (o *profileOptions) secret() (string, error) {
	if err := api.CheckSecret(o.credentials); err != nil {
		return "", err
	}
	f, err := os.Open(o.credentials)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret))
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(b))
	if s == "" || strings.ContainsAny(s, "\r\n") {
		return "", fmt.Errorf("%s: %w", o.credentials, errors.New("it must have one line"))
	}
	return s, nil
}

// config is what the agent gets; nil: it takes no profiles.
func (o *profileOptions) config() *profiles.Config {
	if o.url == "" && !o.scrape {
		return nil
	}
	host, _ := os.Hostname()
	c := &profiles.Config{Every: o.interval, Scrape: o.scrape, URL: o.url, OTLP: o.format == "otlp", Tenant: o.tenant,
		Host: host}
	if o.credentials != "" {
		c.Credentials = o.secret
	}
	return c
}
