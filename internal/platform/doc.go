// Package platform stops the build on systems that heartbeat does not run on, in words.
// Packages that need more of a system than Go has everywhere import it.
package platform
