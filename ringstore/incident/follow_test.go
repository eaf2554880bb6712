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

// TestReplace: a JVM that dies of an exhausted heap has one incident, unless the older one has more of the recording.
func TestReplace(t *testing.T) {
	now := time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC)
	made := func(id string, ago time.Duration, first uint64) Incident {
		return Incident{ID: id, JVM: "shop", Session: "s", Auto: true, Created: now.Add(-ago), Reason: "why " + id,
			FirstGC: first, LastGC: 60, References: &Listed{GC: 58, Objects: 7}}
	}
	asked := made("asked", time.Second, 1)
	asked.Auto = false
	for name, c := range map[string]struct {
		old  Incident
		want bool
	}{
		"the same":           {made("x", 2*time.Second, 1), true},
		"long ago":           {made("x", sameEvent, 1), false},
		"it has older files": {made("x", time.Second, 0), false},
		"asked for":          {asked, false},
	} {
		i := made("end", 0, 1)
		i.LastGC, i.References, i.Reason = 69, &Listed{Why: "the JVM had ended"}, "the JVM ended"
		i.follow([]Incident{c.old})
		i.replace([]Incident{c.old})
		if got := len(i.Replaces) == 1 && i.Follows == nil && i.Reason == "why x; the JVM ended" &&
			i.References.GC == 58; got != c.want || !c.want && len(i.Replaces) > 0 {
			t.Errorf("%s: %+v", name, i)
		}
	}
}
