// Package s3 puts files into a bucket of an S3 server, and reads them there in ranges.
//
// Invariants, beside those of package bucket:
//
//  1. A server that does not answer is given up after idleLimit. Memory is bounded by one part, and by cacheBlocks for
//     each object that is read.
//  2. Neither secrets nor signed requests are in errors.
//  3. No program is started: a credential_process in a credentials file is refused.
package s3
