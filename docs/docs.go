// Package docs holds the pages for people, and carries the one that oma explain reads from. Its tests hold the pages
// against the program. It knows nothing of what the pages speak of.
package docs

import _ "embed"

// Checks is the page that has a section for every code of a diagnostic.
//
//go:embed checks.md
var Checks string
