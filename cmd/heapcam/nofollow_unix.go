//go:build unix

package main

import "golang.org/x/sys/unix"

// noFollow is the flag of an open that fails at a symbolic link.
const noFollow = unix.O_NOFOLLOW
