package main

import "golang.org/x/sys/unix"

func cpu() string {
	name, _ := unix.Sysctl("machdep.cpu.brand_string") // unknown without it
	return known(name)
}

func load() string { return known("") }

func fileSystem(dir string) string {
	var s unix.Statfs_t
	_ = unix.Statfs(dir, &s) // unknown without it
	return known(unix.ByteSliceToString(s.Fstypename[:]))
}
