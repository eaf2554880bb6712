//go:build unix

package api

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/api/apitest"
)

// TestOpenSecrets: neither tokens nor a key that others can read are taken.
func TestOpenSecrets(t *testing.T) {
	dir := t.TempDir()
	apitest.NewAuthority(t, dir, "ca").Issue("host", nil)
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("all status,pull "+strings.Repeat("all", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := RemoteConfig{Listen: apitest.FreeAddress(t), Cert: filepath.Join(dir, "host.pem"),
		Key: filepath.Join(dir, "host.key"), Tokens: tokens}
	ended, stop := context.WithCancel(context.Background())
	stop()
	for what, file := range map[string]string{"tokens": tokens, "key": cfg.Key} {
		for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: true, 0o604: true} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			var open *SecretError
			if err := New(recorder{dir}, Config{}).ServeRemote(ended, cfg); errors.As(err, &open) != want {
				t.Errorf("%s of mode %#o: %v", what, mode, err)
			}
		}
		os.Chmod(file, 0o600)
	}
}
