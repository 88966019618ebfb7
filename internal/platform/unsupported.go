//go:build !linux && !darwin

package platform

// The compiler prints the unknown name, so the name is the sentence.
var _ = heartbeat_runs_on_Linux_and_macOS_only__on_Windows_use_WSL__see_docs_install_md
