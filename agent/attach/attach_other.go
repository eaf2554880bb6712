//go:build !linux

package attach

import (
	"context"
	"errors"
)

func call(ctx context.Context, pid int, name string, args ...string) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
