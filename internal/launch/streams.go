package launch

import "os"

// CommandName is what the launcher is called where it is installed.
const CommandName = "heartbeat-launch"

// streams are the process's own.
type streams struct{ in, out, err *os.File }
