//go:build !unix

package main

import "os"

func passedSignals() []os.Signal { return []os.Signal{os.Interrupt} }

func passSignal(*os.Process, os.Signal) {} // the console has signalled the command already

func waitStatus(p *os.ProcessState) int { return p.ExitCode() }
