package settle

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", fmt.Sprint(4*runtime.GOMAXPROCS(0))); err != nil { // they mostly wait
		panic(err)
	}
	os.Exit(m.Run())
}
