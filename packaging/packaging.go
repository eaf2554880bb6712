// Package packaging holds what the packages and `heapcam service install` put on a host beside the binary: the
// commented configuration. The unit is in package svc; nfpm.yaml and the scripts are read by tools/packages alone.
package packaging

import _ "embed"

// Config is the configuration of a new installation, every key with its default.
//
//go:embed heapcam.yaml
var Config []byte
