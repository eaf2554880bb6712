package probe

import "embed"

//go:embed lib/libheapcam-linux-arm64.*
var lib embed.FS
