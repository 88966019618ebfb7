package terminal

import (
	"bytes"
	"os"
	"strconv"
)

// processes lists those that are no zombies (proc(5)). It is empty where /proc is
// not mounted.
func processes() (all []process) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		// 42 (a name) S 1 42 42 ...: the name may have anything in it
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 3 || f[0][0] == 'Z' || f[0][0] == 'X' {
			continue
		}
		parent, _ := strconv.Atoi(string(f[1])) // the kernel prints numbers
		group, _ := strconv.Atoi(string(f[2]))
		all = append(all, process{pid, parent, group})
	}
	return all
}
