//go:build !linux

package attach

import (
	"context"
	"errors"
)

func call(context.Context, JVM, int64, string, ...string) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
