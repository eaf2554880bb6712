// Package upload puts the incidents of an agent into a bucket.
//
// Terms: an incident is *pending* until the bucket has it. The incidents on disk are the queue: nothing is copied.
//
// Invariants:
//
//  1. It takes no disk space but a document of names, and removes nothing. An incident that makes room for a newer one
//     before the bucket has it is *dropped*, and counted.
//  2. An incident is in the bucket once, whatever happens to the agent, the server and the connection.
//  3. Only incidents leave the host, only to the configured bucket. Neither secrets nor signed requests are in logs,
//     status or documents.
//  4. Recording does not wait for it.
//
// It does not know what is in an incident.
package upload
