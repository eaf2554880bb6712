// Package pods asks the API server of Kubernetes whose the pods of this node are, if the operator allowed it.
//
// Terms: a *listing* is one request for the pods of the node. It asks for their metadata only (PartialObjectMetadata),
// so what a pod's specification holds, such as its environment, stays on the server.
//
// Invariants:
//
//  1. A listing is made for a pod that no listing has named yet, at most every five seconds, and 30 seconds after one
//     that failed. Whoever asks waits four seconds at most. Without an answer a JVM is recorded without names.
//  2. The server's answer is bounded: 32 MiB, 4,096 pods. Of annotations and labels only those are kept that name
//     attributes of package trace, cleaned by whoever uses them.
//  3. The token is read anew for each listing, since Kubernetes replaces it. It is sent to the server alone, redirects
//     are not followed, and no error holds it.
package pods

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/trace"
)

const (
	answerWithin = 2 * time.Second
	maxAnswer    = 32 << 20
	maxPods      = 4096
	anew         = 5 * time.Second  // between two listings
	afterFailure = 30 * time.Second // between a listing that failed and the next one
	repeatLine   = 10 * time.Minute // between two lines of the log about failures
)

// account is where Kubernetes puts what a pod's service account has.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config says where the server is.
type Config struct {
	Server string // https://HOST:PORT
	Token  string // file of the token
	CA     string // file of the certificates that the server's is checked against, PEM
	Node   string // name of the node
	Log    zerolog.Logger
}

// InCluster gives the configuration of a pod with a service account. Its node is what the variable HEAPCAM_NODE_NAME
// says.
func InCluster(log zerolog.Logger) (Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	c := Config{Server: "https://" + net.JoinHostPort(host, port), Token: account + "/token", CA: account + "/ca.crt",
		Node: os.Getenv("HEAPCAM_NODE_NAME"), Log: log}
	switch {
	case host == "" || port == "":
		return c, errors.New("it works only in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	case c.Node == "":
		return c, errors.New("the variable HEAPCAM_NODE_NAME must have the name of the node (spec.nodeName)")
	}
	for _, file := range []string{c.Token, c.CA} {
		if _, err := os.Stat(file); err != nil {
			return c, fmt.Errorf("the pod needs a service account whose token is mounted: %w", err)
		}
	}
	return c, nil
}

// Client knows the pods of the node. Its methods may be called by several goroutines.
type Client struct {
	cfg  Config
	now  func() time.Time // tests have another clock
	slot chan struct{}    // one listing at a time

	mu     sync.Mutex
	pods   map[string]map[string]string // attributes by UID
	next   time.Time                    // of the next listing, at the earliest
	logged time.Time
}

// New gives a Client, which asks nothing yet.
func New(c Config) *Client {
	return &Client{cfg: c, now: time.Now, slot: make(chan struct{}, 1)}
}

// Attributes gives what the server says of the pod with this UID; nil: nothing is known.
func (c *Client) Attributes(uid string) map[string]string {
	if uid == "" {
		return nil
	}
	a, due := c.known(uid)
	if a != nil || !due {
		return a
	}
	select {
	case c.slot <- struct{}{}:
		defer func() { <-c.slot }()
	case <-time.After(answerWithin):
		return nil
	}
	if a, due = c.known(uid); a != nil || !due { // another goroutine has asked meanwhile
		return a
	}
	pods, err := c.list()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if err != nil {
		c.next = now.Add(afterFailure)
		if now.Sub(c.logged) > repeatLine {
			c.logged = now
			logs.Write(&c.cfg.Log, logs.PodsNotListed, logs.Err.Of(err))
		}
		return nil
	}
	c.pods, c.next = pods, now.Add(anew)
	return c.pods[uid]
}

// known gives what the last listing says, and whether a new one may be made.
func (c *Client) known(uid string) (a map[string]string, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[uid], !c.now().Before(c.next)
}

// list asks for the pods of the node, from the server's cache.
func (c *Client) list() (map[string]map[string]string, error) {
	token, err := os.ReadFile(c.cfg.Token)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(c.cfg.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", c.cfg.CA)
	}
	to := &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx, stop := context.WithTimeout(context.Background(), answerWithin)
	defer stop()
	q := url.Values{"fieldSelector": {"spec.nodeName=" + c.cfg.Node}, "resourceVersion": {"0"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.cfg.Server+"/api/v1/pods?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	a, err := to.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list pods of node %s: %s", c.cfg.Node, a.Status)
	}
	return decode(io.LimitReader(a.Body, maxAnswer))
}

// metadata is what is read of a pod.
type metadata struct {
	UID         string            `json:"uid"`
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Owners      []struct {
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		Controller bool   `json:"controller"`
	} `json:"ownerReferences"`
}

// decode reads a listing, pod by pod.
func decode(r io.Reader) (map[string]map[string]string, error) {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("the server's answer is no list of pods"), err)
	}
	pods := map[string]map[string]string{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		if key != "items" {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return nil, err
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return nil, errors.Join(errors.New("items is no list"), err)
		}
		for d.More() {
			var item struct {
				Metadata metadata `json:"metadata"`
			}
			if err := d.Decode(&item); err != nil {
				return nil, err
			}
			if len(pods) == maxPods {
				return nil, fmt.Errorf("more than %d pods", maxPods)
			}
			pods[strings.Clone(item.Metadata.UID)] = attributes(&item.Metadata)
		}
		if _, err := d.Token(); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil { // an answer that was cut off
		return nil, err
	}
	return pods, nil
}

// Annotations that name an attribute begin so, as OpenTelemetry specifies. The labels are those that Kubernetes
// recommends.
const (
	annotation    = "resource.opentelemetry.io/"
	labelInstance = "app.kubernetes.io/instance"
	labelName     = "app.kubernetes.io/name"
	labelVersion  = "app.kubernetes.io/version"
	labelTemplate = "pod-template-hash"
)

// attributes gives what a pod says of its JVMs: annotations win over labels, labels over what owns the pod.
func attributes(m *metadata) map[string]string {
	a := map[string]string{}
	add := func(key, value string) {
		if value = trace.CleanAttr(value); value != "" && a[key] == "" {
			a[key] = value
		}
	}
	for _, k := range trace.ResourceKeys {
		if !ofNode[k] {
			add(k, m.Annotations[annotation+k])
		}
	}
	add(trace.AttrPod, m.Name)
	add(trace.AttrK8sNS, m.Namespace)
	add(trace.AttrService, m.Labels[labelInstance])
	add(trace.AttrService, m.Labels[labelName])
	add(trace.AttrVersion, m.Labels[labelVersion])
	for _, o := range m.Owners {
		if !o.Controller {
			continue
		}
		name := o.Name
		if o.Kind == "ReplicaSet" && m.Labels[labelTemplate] != "" {
			if deployment, ok := strings.CutSuffix(name, "-"+m.Labels[labelTemplate]); ok {
				add(trace.AttrDeployment, deployment)
				name = deployment
			}
		}
		add(trace.AttrService, name)
	}
	return a
}

// ofNode are attributes that no pod may name: the agent knows them.
var ofNode = map[string]bool{trace.AttrPod: true, trace.AttrPodUID: true, trace.AttrK8sNS: true, trace.AttrNode: true,
	trace.AttrHost: true, trace.AttrContainer: true, trace.AttrPID: true, trace.AttrOwner: true,
	trace.AttrRuntime: true, trace.AttrUnit: true, trace.AttrRedact: true}
