package metrics

import "github.com/heapcam/heapcam/agent/session"

var (
	oldGarbage = define(gauge, "old_garbage_bytes", "Garbage in old space that was not collected yet.",
		"Known from the reference listing of the newest incident, for a day after it. "+
			"`heapcam_old_listing_timestamp_seconds` says how old the figure is. "+
			"`heapcam_old_garbage_bytes / heapcam_old_objects_bytes` is the share.", jvmLabels...)
	oldObjects = define(gauge, "old_objects_bytes",
		"Objects in old space, garbage included, at the time of heapcam_old_garbage_bytes.", "", jvmLabels...)
	oldListed = define(gauge, "old_listing_timestamp_seconds",
		"Time of the reference listing behind heapcam_old_garbage_bytes, Unix time.",
		"`time() - heapcam_old_listing_timestamp_seconds` is its age.", jvmLabels...)
)

// putGarbage gives how much of old space was garbage when the references of each recording were listed last.
func putGarbage(put func(m metric, v float64, labels ...string), all []session.Status) {
	for i := range all {
		s := &all[i]
		if s.Verdict == nil || s.Verdict.Garbage == nil {
			continue
		}
		g := s.Verdict.Garbage
		put(oldGarbage, float64(g.Dead), s.ID, s.Name)
		put(oldObjects, float64(g.Old), s.ID, s.Name)
		put(oldListed, float64(g.Time.UnixMilli())/1e3, s.ID, s.Name)
	}
}
