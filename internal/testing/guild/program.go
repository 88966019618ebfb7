package guild

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
)

// asProgram is set in the environment of a test's program that is to be a guild.
const asProgram = "HEARTBEAT_TEST_GUILD"

// RunIfAsked turns a test's program into the guild that [Launch] started, and does not
// return then. TestMain calls it first.
func RunIfAsked() {
	if os.Getenv(asProgram) != "" {
		Main()
	}
}

// Main is the guild as a program. It prints its URL once it listens, and runs until it
// is killed.
func Main() {
	flags := flag.NewFlagSet("guild", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "the `address` to listen on")
	var o Options
	flags.StringVar(&o.State, "state", "", "the `file` that holds everything")
	flags.BoolVar(&o.Cancelled, "cancelled", false, `take "cancelled" as the status of a record`)
	flags.BoolVar(&o.Strict, "strict", false, "take reports of sessions that are known and not over")
	flags.StringVar(&o.DeadLetters, "drain", "", "the `folder` of dead letters to drain at the start")
	_ = flags.Parse(os.Args[1:]) // it exits by itself
	err := serve(*listen, o)
	fmt.Fprintln(os.Stderr, "guild:", err)
	os.Exit(1)
}

func serve(listen string, o Options) error {
	g, err := Open(o)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	return http.Serve(l, g)
}
