//go:build !unix

package shmring

// folderOnly has no meaning here: nobody else can write to the parent of a ring's folder.
const folderOnly = 0
