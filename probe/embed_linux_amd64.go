package probe

import "embed"

//go:embed lib/libheapcam-linux-amd64.*
var lib embed.FS
