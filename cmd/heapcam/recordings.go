package main

import "github.com/heapcam/heapcam/agent"

func storeTooNew(error) bool   { return false }
func storeDamaged(error) bool  { return false }
func storeNotFound(error) bool { return false }

func recordings(dirs []string) ([]agent.Status, error) { return nil, nil }
