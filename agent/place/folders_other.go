//go:build !linux

package main

import (
	"errors"

	"github.com/heapcam/heapcam/agent/jvms"
)

func libraryFor(jvms.JVM, []byte) (string, error) { return "", errors.ErrUnsupported }

func ringDirIn(jvms.JVM, string, string) (string, string, error) {
	return "", "", errors.ErrUnsupported
}

func ownDirOf(j jvms.JVM, dir string) error { return ownDir(dir, j.UID) }
