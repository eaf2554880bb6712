// Package folder handles what a ring folder has besides its segments: whose recording it is, documents, and links of
// pulls.
//
//	recording.json     whose recording this is (Identity), and what its recorder counts
//	incident.json      in an incident's folder: what was kept, and why
//	00000001.hcr …     segments
//	.pull/ID/          links of a pull that is under way
//
// Invariants:
//
//  1. Files of another session are foreign: they are named, and never read as part of the recording, copied, counted,
//     changed or removed. The rule that says whose recording a folder holds is at OwnSession.
//  2. A document is believed only if its checksum fits; those of early versions have none, and are believed.
//  3. What a pull links has a name and counts; nobody removes a link that is being read.
//
// All functions may be called while a recorder writes to the folder, by any process. It does not read frames.
package folder
