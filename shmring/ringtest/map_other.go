//go:build !windows && !unix

package ringtest

import (
	"errors"
	"os"
)

func mapped(*os.File, int) (file, error) { return nil, errors.ErrUnsupported }
