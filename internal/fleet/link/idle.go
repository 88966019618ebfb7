package link

import _ "unsafe" // for go:linkname

// statFile is what the server's library reads each second, from the start of any process that links it, for the share
// of the CPU that a server's monitoring shows. It ends that where the file is not there.
//
//go:linkname statFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var statFile string

// ServesNobody ends what the server's library does in a process that is no server: most of what an agent did that waits.
//
//go:norace
func ServesNobody() { statFile = "" } // the library reads it without a lock
