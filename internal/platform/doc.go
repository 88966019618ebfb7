// Package platform makes the build fail, with a sentence, on systems that heartbeat does not run on. Packages that need
// more of a system than Go offers everywhere import it, and with it get a stack that need not grow.
package platform
