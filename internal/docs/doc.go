// Package docs tests the documents: the files and headings that they and the alerts' runbook links name exist, and so
// do the tests that their commands run. It has no code of its own, and follows no link out of the repository.
package docs
