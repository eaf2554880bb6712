// Package incident keeps windows of rings: copies that stay when the ring evicts its files.
//
//	INCIDENTS/ID/   segments (hard links, so that they cost nothing while the ring has them too), recording.json,
//	                and incident.json, which is written last
//
// Invariants:
//
//  1. What all incidents occupy, each file once whatever its names, never exceeds Incidents.Max. The oldest automatic
//     ones are deleted for a newer one; others never. What still does not fit is left out, oldest first, and named.
//  2. A folder without incident.json was not finished. It is removed an hour after it was begun.
//  3. The ring is not changed, and its recorder is not needed.
package incident
