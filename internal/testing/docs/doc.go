// Package docs follows the documents as their readers do. Its tests check that they say
// what the commands do.
package docs
