//go:build !linux

package main

const ownTasks = 24

func fewTasks() string { return "" }
