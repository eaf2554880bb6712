//go:build !unix

package main

import (
	"context"

	"github.com/heapcam/heapcam/agent"
)

func resume(context.Context, *agent.Agent, string) {}
