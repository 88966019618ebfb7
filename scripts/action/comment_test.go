package action_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"heartbeat/internal/testing/action"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mark begins the comment of an id.
func mark(id string) string { return fmt.Sprintf("<!-- heartbeat %x -->", sha256.Sum256([]byte(id))) }

// A comment counts as ours by its author, not by what anybody can write into it. Ours is found
// behind many others.
func TestCommentsOfOthers(t *testing.T) {
	j := newJob(t)
	for range 130 {
		j.forge.Put(action.Comment{Body: mark("one") + "\nanother's", User: &action.User{Login: "eve", Type: "User"}})
	}
	for range 2 {
		u := j.use("prompt=hello", "id=one", "comment=true")
		require.Zero(t, u.Status, u.Log)
	}
	comments := j.forge.Comments()
	require.Len(t, comments, 131)
	for _, c := range comments[:130] {
		assert.Contains(t, c.Body, "another's")
	}
	assert.Contains(t, comments[130].Body, "did hello")
}

// Two jobs that write at the same time leave one comment, also with the token of a person.
func TestCommentsAtOnce(t *testing.T) {
	for _, login := range []string{"", "me"} {
		j := newJob(t)
		by := action.Bot
		if login != "" {
			by = &action.User{Login: login, Type: "User"}
		}
		j.forge.Login = login
		j.forge.Beside = func() { j.forge.Put(action.Comment{Body: mark("one") + "\nof another job", User: by}) }
		u := j.use("prompt=hello", "id=one", "comment=true")
		require.Zero(t, u.Status, u.Log)
		comments := j.forge.Comments()
		require.Len(t, comments, 1)
		assert.Equal(t, 1, comments[0].ID, "the older one")
		assert.Contains(t, comments[0].Body, "did hello")
	}
}

// What keeps a comment from being written fails the job and says what to do. The work is kept.
func TestNoComment(t *testing.T) {
	j := newJob(t)
	j.forge.ReadOnly = true
	u := j.use("prompt=hello", "comment=true")
	assert.Equal(t, 78, u.Status)
	assert.Equal(t, "comment", u.Failed)
	assert.Equal(t, "answered", u.Outputs["outcome"])
	assert.Contains(t, u.Log, "pull-requests: write")
	require.Len(t, u.Commands, 1)
	assert.Equal(t, "error", u.Commands[0].Name)

	u = j.use("prompt=hello", "comment=true", "token=another")
	assert.Equal(t, 78, u.Status)
	assert.Contains(t, u.Log, "does not accept the token")

	url := j.forge.URL
	j.Env = append(j.Env, "GITHUB_API_URL=http://127.0.0.1:1")
	u = j.use("prompt=hello", "comment=true")
	assert.Equal(t, 75, u.Status)
	assert.Contains(t, u.Log, "run the job again, the reply is kept")

	j.Env = append(j.Env, "GITHUB_API_URL="+url)
	j.forge.ReadOnly = false
	require.Zero(t, j.use("prompt=hello", "comment=7").Status)
	assert.Len(t, j.forge.Comments(), 1)
	assert.Equal(t, 1, j.asked("hello"))

	j.Event = map[string]any{"ref": "refs/heads/main"}
	u = j.use("prompt=hello", "comment=true")
	assert.Zero(t, u.Status)
	assert.Contains(t, u.Log, "is no pull request: the reply is not posted")
}
