package main

import (
	"strings"
	"testing"
)

const page = "One.\n\n```sh\na\n```\n```sh full\nb\n```\n<!-- output:begin 2 -->\nold\n<!-- output:end -->\n" +
	"```sh elsewhere\nc\n```\n```sh\nd\n```\n<!-- output:begin -->\n<!-- output:end -->\nEnd.\n"

func TestEachOutputFollowsItsCommands(t *testing.T) {
	steps := commands(page)
	if got := strings.Join(steps, "|"); got != "a\n|b\n|d\n" {
		t.Fatalf("the commands are %q", got)
	}
	got, err := between(page, "output", follow(page, []string{"of a", "1\n2\n3\n", "of d\n"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"begin 2 -->\n```text\n1\n2\n…\n```\n<!-- output:end -->\n```sh elsewhere",
		"begin -->\n```text\nof d\n```\n<!-- output:end -->\nEnd.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	again, err := between(got, "output", follow(got, []string{"of a", "1\n2\n3\n", "of d\n"}))
	if err != nil || again != got {
		t.Errorf("the second time: %q, %v", again, err)
	}
}

func TestMissingMarkersAreAnError(t *testing.T) {
	if _, err := between("no markers", "demo", []string{"x"}); err == nil {
		t.Error("no error")
	}
}

func TestLongLinesAreFolded(t *testing.T) {
	got := shape(strings.Repeat("word ", 50)+"\n"+strings.Repeat("é", 130)+"\n", 0)
	for line := range strings.Lines(got) {
		if n := len([]rune(line)) - 1; n > columns {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if n := strings.Count(got, "word"); n != 50 {
		t.Errorf("%d words are left", n)
	}
}
