// Package docs holds the rule that what the documents link to is there: files, and headings within them; the
// runbook links of the alerts too. It has no code of its own, and follows no link out of the repository.
package docs
