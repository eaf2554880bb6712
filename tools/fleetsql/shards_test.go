package fleetsql

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shards are two ClickHouse servers. Each has half of the recordings; the first one is asked.
type shards struct{ servers []*server }

type server struct {
	c         *exec.Cmd
	url       string
	tcp, http int
}

// config is that of a server: one user without a password, on loopback, and the cluster of both.
const config = `<yandex>
<logger><level>warning</level><console>1</console></logger>
<listen_host>127.0.0.1</listen_host><http_port>%d</http_port><tcp_port>%d</tcp_port>
<path>%s/data/</path><tmp_path>%[3]s/tmp/</tmp_path><user_files_path>%[3]s/files/</user_files_path>
<format_schema_path>%[3]s/schemas/</format_schema_path>
<users_config>config.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>268435456</mark_cache_size>
<profiles><default><max_threads>2</max_threads>
<join_default_strictness>ALL</join_default_strictness></default></profiles>
<quotas><default></default></quotas>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<remote_servers><fleet>
<shard><replica><host>127.0.0.1</host><port>%d</port></replica></shard>
<shard><replica><host>127.0.0.1</host><port>%d</port></replica></shard>
</fleet></remote_servers>
</yandex>`

// startShards starts two servers, those of tools/setup, and loads what the views of e show.
func startShards(t *testing.T, e *chdb) *shards {
	t.Helper()
	root := installed(t, "clickhouse")
	free := func() int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().(*net.TCPAddr).Port
	}
	out := &shards{[]*server{{tcp: free(), http: free()}, {tcp: free(), http: free()}}}
	for _, s := range out.servers {
		dir := t.TempDir()
		text := fmt.Sprintf(config, s.http, s.tcp, dir, out.servers[0].tcp, out.servers[1].tcp)
		if err := os.WriteFile(filepath.Join(dir, "config.xml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		s.url = fmt.Sprintf("http://127.0.0.1:%d/", s.http)
		s.c = exec.Command(filepath.Join(root, "usr/sbin/clickhouse-server"), "--config-file=config.xml")
		s.c.Dir, s.c.Stdout, s.c.Stderr = dir, &log, &log
		s.c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(root, "usr/lib/x86_64-linux-gnu"))
		s.c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := s.c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			s.c.Process.Kill()
			s.c.Wait()
			if t.Failed() {
				t.Logf("%s", log.Bytes()[max(0, log.Len()-2000):])
			}
		})
		for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			if a, err := http.Get(s.url); err == nil {
				a.Body.Close()
				break
			}
			if time.Now().After(end) {
				t.Fatal("clickhouse-server does not start")
			}
		}
	}
	t.Logf("two shards of ClickHouse %s", out.servers[0].run(t, "SELECT version()", nil))
	for table := range times {
		out.load(t, e, table)
	}
	return out
}

// load makes a table on each server, with half of the rows, and the one over both.
func (x *shards) load(t *testing.T, e *chdb, table string) {
	t.Helper()
	var columns []string
	for _, c := range cells(e.text(t, "SELECT name, type FROM system.columns WHERE table = '"+table+"' AND "+
		"database = currentDatabase() ORDER BY position")) {
		if c[1] == "Bool" {
			c[1] = "UInt8"
		}
		columns = append(columns, c[0]+" "+c[1])
	}
	half, order := "cityHash64(recording)", "(service, recording)"
	if table == "stacks" {
		half, order = "cityHash64(stack_id)", "stack_id"
	}
	for i, s := range x.servers {
		s.run(t, fmt.Sprintf("CREATE TABLE %s_local (%s) ENGINE = MergeTree ORDER BY %s", table,
			strings.Join(columns, ", "), order), nil)
		s.run(t, fmt.Sprintf("CREATE TABLE %s AS %[1]s_local ENGINE = Distributed(fleet, default, %[1]s_local)",
			table), nil)
		rows := e.text(t, fmt.Sprintf("SELECT * FROM %s WHERE %s %% 2 = %d SETTINGS bool_true_representation = '1', "+
			"bool_false_representation = '0' FORMAT TSV", table, half, i))
		s.run(t, "INSERT INTO "+table+"_local FORMAT TSV", rows)
		t.Logf("%s: %s rows", table, strings.TrimSpace(s.run(t, "SELECT count() FROM "+table+"_local", nil)))
	}
}

// run runs a statement; rows are what it inserts.
func (s *server) run(t *testing.T, statement string, rows []byte) string {
	t.Helper()
	body := io.Reader(strings.NewReader(statement))
	to := s.url
	if rows != nil {
		to, body = s.url+"?query="+url.QueryEscape(statement), bytes.NewReader(rows)
	}
	a, err := http.Post(to, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s %v %s\n%s", a.Status, err, b, statement)
	}
	return string(b)
}

func (x *shards) ask(t *testing.T, query string) [][]string {
	t.Helper()
	return cells([]byte(x.servers[0].run(t, query+"\nFORMAT TSVWithNames", nil)))
}

func (x *shards) cpu(t *testing.T) (all time.Duration) {
	for _, s := range x.servers {
		all += cpuOf(t, s.c.Process.Pid)
	}
	return all
}
