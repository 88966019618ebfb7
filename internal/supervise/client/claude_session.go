package client

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
)

// aSession is how the client names its sessions.
var aSession = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// conversationOf tells which session the arguments ask for, "" if only the client will know,
// and by which flags and which rest of the arguments it is told so. resume replaces what they
// say, and a new one gets its id here if that is to be known.
func conversationOf(args []string, resume string, known bool) (session string, flags, rest []string) {
	asked := readConversation(args)
	switch {
	case resume != "":
		return resume, []string{"--resume", resume}, asked.rest
	case asked.session != "":
		return asked.session, nil, args
	case asked.elsewhere || asked.fork:
		return "", nil, args // as it does when a name or --continue finds it
	case asked.resume != "" || !known:
		return asked.resume, nil, args
	}
	id := newSession()
	return id, []string{"--session-id", id}, args
}

// Anew is arguments of Claude Code without what says which conversation it goes on with.
func Anew(args []string) []string { return readConversation(args).rest }

// asked is what arguments say about the conversation.
type asked struct {
	session   string // --session-id
	resume    string // --resume, if it is a session's id
	fork      bool   // the conversation goes on in another session
	elsewhere bool   // the client finds it by itself
	rest      []string
}

func readConversation(args []string) (a asked) {
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		next := func() string {
			switch {
			case joined:
				return value
			case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
				i++
				return args[i]
			}
			return ""
		}
		switch name {
		case "--":
			a.rest = append(a.rest, args[i:]...)
			return a
		case "--session-id":
			a.session = next()
		case "--resume", "-r":
			if id := next(); aSession.MatchString(id) {
				a.resume = id
			} else {
				a.elsewhere = true
			}
		case "--from-pr", "--teleport":
			next()
			a.elsewhere = true
		case "--continue", "-c":
			a.elsewhere = true
		case "--fork-session":
			a.fork = true
		default:
			a.rest = append(a.rest, args[i])
		}
	}
	return a
}

// newSession draws a session's id, as the client does.
func newSession() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
