//go:build !unix

package main

// noFollow: there is no such flag here.
const noFollow = 0
