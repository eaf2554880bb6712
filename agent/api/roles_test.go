package api

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestRoleTable compares what each role may with the table of docs/security.md.
func TestRoleTable(t *testing.T) {
	b, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	const gid = 54321 // stands for the group
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) \\| (.*?) \\| (.*?) \\| (.*?) \\|$")
	rows := row.FindAllStringSubmatch(string(b), -1)
	if len(rows) != len(Verbs) {
		t.Fatalf("the table has %d verbs, the API %d", len(rows), len(Verbs))
	}
	for _, row := range rows {
		verb := row[1]
		for i, c := range []Caller{
			peer{uid: 0, ok: true}.caller(77, gid),
			peer{uid: 1000, groups: []int{5, gid}, ok: true}.caller(0, gid),
			peer{uid: 1000, groups: []int{5}, ok: true}.caller(0, gid),
			peer{uid: OverflowUID, ok: true}.caller(0, gid),
		} {
			cell := row[2]
			if i > 1 {
				cell = row[3]
			}
			if want := cell != "no"; i != 3 && c.May(verb) != want {
				t.Errorf("%s as %s: %v, the table says %q", verb, c.Name, c.May(verb), cell)
			} else if i == 3 && c.May(verb) {
				t.Errorf("%s as the overflow user", verb)
			}
		}
		remote := Caller{Role: Operator, Scope: remoteScope}
		if want := strings.HasPrefix(row[5], "scope"); remote.May(verb) != want {
			t.Errorf("%s from another host: %v, the table says %q", verb, remote.May(verb), row[5])
		}
	}
}

// TestChangesAreLimited: a user has ChangesAtOnce changes at once and one a second after that, beside other users.
func TestChangesAreLimited(t *testing.T) {
	var c changes
	now := time.Unix(1e9, 0)
	for i := range ChangesAtOnce {
		if !c.allow(1, now) {
			t.Fatalf("change %d is refused", i)
		}
	}
	if c.allow(1, now) || !c.allow(2, now) {
		t.Error("one too many, or another user's")
	}
	if !c.allow(1, now.Add(changeEvery)) || c.allow(1, now.Add(changeEvery)) {
		t.Error("after a second there is one more")
	}
}
