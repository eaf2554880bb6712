//go:build !linux

package agent

import (
	"context"
	"errors"

	"github.com/heapcam/heapcam/shmring"
)

func checkSpool(cfg *Config) error {
	if cfg.Spool != "" {
		return errors.New("a spool folder is for Linux")
	}
	return nil
}

func (a *Agent) watchSpool(context.Context) {}

func producer(*shmring.Ring, shmring.Status) (host int, ok bool) { return 0, false }
