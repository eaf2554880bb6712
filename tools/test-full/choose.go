package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// selection is what of all there is is to run.
type selection struct {
	packages    []string // none: all
	stage, test string   // regular expressions; "": all
}

// choose gives the stages that are to run. It is an error if there is none.
func (o *selection) choose(all []stage) ([]stage, error) {
	out := slices.Clone(all)
	if len(o.packages) > 0 {
		names, err := list(o.packages...)
		if err != nil {
			return nil, err
		}
		out = slices.DeleteFunc(out, func(s stage) bool { return !slices.Contains(names, s.name) })
	}
	named, err := regexp.Compile(o.stage)
	if err != nil {
		return nil, fmt.Errorf("-stage: %w", err)
	}
	out = slices.DeleteFunc(out, func(s stage) bool { return !named.MatchString(s.name) })
	if o.test != "" {
		tests, err := regexp.Compile(o.test)
		if err != nil {
			return nil, fmt.Errorf("-run: %w", err)
		}
		out = slices.DeleteFunc(out, func(s stage) bool { return s.pkg == "" })
		for i := range out {
			out[i].chosen = tests
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no tests", strings.Join(append(slices.Clone(o.packages), o.stage), " "))
	}
	return out, nil
}
