// Package bucket has the words of a bucket: names of objects, and what putting one takes and says. Package s3 is the
// bucket of an S3 server.
//
// Terms: an *object* is a file in a bucket, its *key* is its name. A large object is sent in *parts*; the server keeps
// the parts of an *upload* that was begun, so another process can continue it.
//
// Invariants:
//
//  1. An object is put whole or not at all, and never replaced: a key that is taken is ErrExists.
//  2. What the server has stored is compared with what was sent. A difference is an error.
package bucket
