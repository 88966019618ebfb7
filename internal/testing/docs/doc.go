// Package docs follows the documents as their readers do. Its tests hold them to what the
// commands do.
package docs
