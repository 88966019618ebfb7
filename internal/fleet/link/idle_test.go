package link

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The library may have given its variable another name.
func TestTheLibrarysFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it reads no file elsewhere")
	}
	assert.Equal(t, fmt.Sprintf("/proc/%d/stat", os.Getpid()), statFile)
}
