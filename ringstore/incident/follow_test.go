package incident

import (
	"testing"
	"time"
)

// TestFollow: an incident follows the newest one of its recording that was made by itself not long before.
func TestFollow(t *testing.T) {
	now := time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC)
	made := func(id, jvm, session string, ago time.Duration, auto bool) Incident {
		return Incident{ID: id, JVM: jvm, Session: session, Auto: auto, Created: now.Add(-ago), Reason: "why " + id}
	}
	i := made("new", "shop", "s", 0, true)
	i.follow([]Incident{made("long ago", "shop", "s", together, true), made("later", "shop", "s", -time.Second, true),
		made("by hand", "shop", "s", time.Second, false), made("other", "mail", "s", time.Second, true),
		made("before", "shop", "r", time.Second, true)})
	if i.Follows != nil {
		t.Errorf("it follows %+v", i.Follows)
	}
	i.follow([]Incident{made("first", "shop", "s", 2*time.Minute, true),
		made("second", "shop", "s", time.Minute, true)})
	if want := (Followed{"second", "why second"}); i.Follows == nil || *i.Follows != want {
		t.Errorf("it follows %+v, not %+v", i.Follows, want)
	}
}
