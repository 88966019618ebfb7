package client

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const given, another = "11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-aaaaaaaaaaaa"

func TestConversation(t *testing.T) {
	for name, c := range map[string]struct {
		args           []string
		resume         string
		session, flags string
		rest           []string
	}{
		"given":             {[]string{"--session-id", given}, "", given, "", []string{"--session-id", given}},
		"resumed":           {[]string{"--resume=" + given, "-p"}, "", given, "", []string{"--resume=" + given, "-p"}},
		"by name":           {[]string{"-r", "my work"}, "", "", "", []string{"-r", "my work"}},
		"to be picked":      {[]string{"--resume", "--print"}, "", "", "", []string{"--resume", "--print"}},
		"continued":         {[]string{"-c"}, "", "", "", []string{"-c"}},
		"forked":            {[]string{"--resume", given, "--fork-session"}, "", "", "", []string{"--resume", given, "--fork-session"}},
		"forked and given":  {[]string{"--resume", given, "--fork-session", "--session-id", another}, "", another, "", []string{"--resume", given, "--fork-session", "--session-id", another}},
		"of a pull request": {[]string{"--from-pr", "7"}, "", "", "", []string{"--from-pr", "7"}},
		"other round": {
			[]string{"--model", "m", "-c", "--resume", given, "--fork-session", "--session-id=" + given, "--from-pr", "7", "x"}, another,
			another, "--resume " + another, []string{"--model", "m", "x"},
		},
		"words": {[]string{"--", "--continue"}, another, another, "--resume " + another, []string{"--", "--continue"}},
	} {
		t.Run(name, func(t *testing.T) {
			session, flags, rest := conversationOf(c.args, c.resume, true)
			assert.Equal(t, c.session, session)
			assert.Equal(t, c.flags, strings.Join(flags, " "))
			assert.Equal(t, c.rest, rest)
		})
	}
	session, flags, rest := conversationOf([]string{"--print"}, "", true)
	assert.Regexp(t, aSession, session)
	assert.Equal(t, []string{"--session-id", session}, flags)
	assert.Equal(t, []string{"--print"}, rest)
	session, flags, _ = conversationOf([]string{"--print"}, "", false)
	assert.Empty(t, session+strings.Join(flags, ""), "a session in the terminal tells of itself")
}

func TestAnew(t *testing.T) {
	assert.Equal(t, []string{"--model", "m"}, Anew([]string{"--session-id", given, "--model", "m", "-c", "--fork-session"}))
}
