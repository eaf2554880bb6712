// Command test-full runs all tests of the repository, the long ones too. It continues where an earlier run was stopped.
//
//	test-full [-again] [-stage REGEXP] [-run REGEXP] [PACKAGE ...]
//	test-full -page
//
// Without packages it runs all. -stage selects by the names on the page, as "with the race detector"; -run selects
// tests by name. What has passed is not run again unless -again is given, or what its package depends
// on has changed: the results are in docs/benchmarks/test-full.json, test by test, with the commit they are of. What
// never passed runs first, then what has not run for longest. A tree with changes runs everything,
// and keeps no results. Afterwards docs/benchmarks/test-full.md says what ran; -page writes that page alone. The exit
// status is 1 if a test failed, and 2 if the run was stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// sideBySide is how many packages run at once. The end-to-end tests have the machine for themselves.
const sideBySide = 2

func main() {
	again := flag.Bool("again", false, "run what has passed, too")
	page := flag.Bool("page", false, "write the page of the results, and run nothing")
	var only selection
	flag.StringVar(&only.stage, "stage", "", "run only what has such a `name` on the page (a regular expression)")
	flag.StringVar(&only.test, "run", "", "run only tests with such a `name` (a regular expression)")
	flag.Parse()
	only.packages = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *again, *page, &only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-full:", err)
	}
	switch {
	case errors.Is(err, context.Canceled):
		os.Exit(2)
	case err != nil:
		os.Exit(1)
	}
}

func run(ctx context.Context, again, page bool, only *selection) error {
	commit, clean, err := treeState()
	if err != nil {
		return err
	}
	all, err := stages()
	if err != nil {
		return err
	}
	keys, err := allKeys(all)
	if err != nil {
		return err
	}
	r := load(commit, keys, clean && !again || page)
	if page {
		return writePage(r, all)
	}
	if !clean {
		fmt.Println("the tree has changes: everything runs, and no results are kept")
		r.file = ""
	}
	chosen, err := only.choose(all)
	if err != nil {
		return err
	}
	err = runStages(ctx, r, chosen)
	if ctx.Err() != nil {
		return fmt.Errorf("stopped; the next run goes on from here: %w", context.Canceled)
	}
	if err != nil {
		return err
	}
	failed := r.summary(os.Stdout, chosen)
	if clean {
		err = writeIfSame(r, all)
	}
	if failed > 0 {
		err = errors.Join(fmt.Errorf("%d tests failed", failed), err)
	}
	return err
}

// allKeys gives the key of each stage.
func allKeys(all []stage) (map[string]string, error) {
	in, err := readInputs()
	if err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for i := range all {
		if keys[all[i].name], err = in.key(&all[i]); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// writeIfSame writes the page. What changed while the tests ran loses its results: nobody knows what they are of.
func writeIfSame(r *results, all []stage) error {
	_, clean, err := treeState()
	if err != nil {
		return err
	}
	keys, err := allKeys(all)
	if err != nil {
		return err
	}
	var changed []string
	for name := range r.Stages {
		if !clean || keys[name] != r.keys[name] {
			changed = append(changed, name)
			r.Stages[name].Key, r.Stages[name].Tests = "", map[string]*outcome{}
		}
	}
	if err := errors.Join(r.save(), writePage(r, all)); err != nil || len(changed) == 0 {
		return err
	}
	slices.Sort(changed)
	return fmt.Errorf("changed while the tests ran, their results are dropped: %s", strings.Join(changed, ", "))
}

// treeState gives the commit, and whether the tree is as it says. The tests themselves write to docs/benchmarks.
func treeState() (commit string, clean bool, err error) {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "", false, fmt.Errorf("git rev-parse HEAD: %w", err)
	}
	changes, err := exec.Command("git", "status", "--porcelain", "--", ".", ":!docs/benchmarks").Output()
	if err != nil {
		return "", false, fmt.Errorf("git status: %w", err)
	}
	return strings.TrimSpace(string(out)), len(strings.TrimSpace(string(changes))) == 0, nil
}

// runStages runs stages, those that may share the machine side by side, and then the others.
func runStages(ctx context.Context, r *results, chosen []stage) error {
	next := make(chan stage)
	var wait sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for range sideBySide {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for s := range next {
				if err := s.run(ctx, r); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		}()
	}
	for _, s := range chosen {
		if !s.alone {
			next <- s
		}
	}
	close(next)
	wait.Wait()
	for _, s := range chosen {
		if s.alone {
			errs = append(errs, s.run(ctx, r))
		}
	}
	return errors.Join(errs...)
}
