//go:build unix

package shmring

import "syscall"

// folderOnly has nothing but a folder opened: opening a fifo in its place would block, opening a device could act.
const folderOnly = syscall.O_DIRECTORY
