//go:build !linux

package ringtest

import (
	"errors"
	"os"
)

func memfd() (*os.File, string, error) { return nil, "", errors.ErrUnsupported }
