package disk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/disk"
)

func TestOthers(t *testing.T) {
	const nobodys = 4_000_000_000 // a number that no account has
	for name, c := range map[string]struct {
		info disk.Info
		want bool
	}{
		"nobody":                          {disk.Info{Mode: 0o755}, false},
		"everybody":                       {disk.Info{Mode: 0o757}, true},
		"everybody, but sticky":           {disk.Info{Mode: 0o1777}, true},
		"somebody by an access list":      {disk.Info{Mode: 0o770, Granted: true}, true},
		"a list whose mask takes it away": {disk.Info{Mode: 0o750, Granted: true}, false},
		"the owner's very own group":      {disk.Info{Mode: 0o775}, false},
		"another group":                   {disk.Info{Mode: 0o775, GID: nobodys}, true},
		"a user without a name":           {disk.Info{Mode: 0o775, UID: nobodys}, true},
		"neither has a name, two numbers": {disk.Info{Mode: 0o660, UID: nobodys, GID: nobodys + 1}, true},
		"neither has a name, one number":  {disk.Info{Mode: 0o660, UID: nobodys, GID: nobodys}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, disk.OthersWrite(c.info)) })
	}
}
