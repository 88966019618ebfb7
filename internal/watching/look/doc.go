// Package look gathers what is shown of many inboxes. It reads an inbox again only if
// its files changed, so that looking at many of them costs next to nothing.
package look
