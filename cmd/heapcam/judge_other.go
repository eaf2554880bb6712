//go:build !linux

package main

import (
	"os"
	"os/exec"
	"time"
)

func ownProgram() (string, error) { return os.Executable() }

func childOf(*exec.Cmd) {}

func yield(int) {}

func taken(int) (cpu time.Duration, memory int64, ok bool) { return 0, 0, false }
