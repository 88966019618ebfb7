package results_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gitHub is as much of GitHub as a comment takes.
type gitHub struct {
	*httptest.Server
	mu       sync.Mutex
	comments map[int][]string // by issue; an id is 1000 times the issue and the place
	status   int              // what each request gets, if not 0
	edits    int
}

func newGitHub(t testing.TB) *gitHub {
	g := &gitHub{comments: map[int][]string{17: nil, 18: nil}}
	mux := http.NewServeMux()
	handle := func(pattern string, do func(w http.ResponseWriter, r *http.Request, n int, body string)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			g.mu.Lock()
			defer g.mu.Unlock()
			var in struct{ Body string }
			_ = json.NewDecoder(r.Body).Decode(&in)
			n, _ := strconv.Atoi(r.PathValue("n"))
			_, there := g.comments[n]
			switch {
			case r.Header.Get("Authorization") != "Bearer ghp_mine":
				g.refuse(w, http.StatusUnauthorized, "Bad credentials")
			case g.status != 0:
				g.refuse(w, g.status, "Not\x1b[2J today")
			case n != 0 && n < 1000 && !there:
				g.refuse(w, http.StatusNotFound, "Not Found")
			case utf8.RuneCountInString(in.Body) > 65536:
				g.refuse(w, http.StatusUnprocessableEntity, "Body is too long")
			default:
				do(w, r, n, in.Body)
			}
		})
	}
	handle("GET /repos/o/r", func(http.ResponseWriter, *http.Request, int, string) {})
	handle("GET /repos/o/r/issues/{n}/comments", func(w http.ResponseWriter, r *http.Request, n int, _ string) {
		page, _ := strconv.Atoi(r.FormValue("page"))
		all := []map[string]any{}
		for i := 100 * (page - 1); i < min(100*page, len(g.comments[n])); i++ {
			all = append(all, map[string]any{"id": 1000*n + i, "body": g.comments[n][i]})
		}
		_ = json.NewEncoder(w).Encode(all)
	})
	handle("POST /repos/o/r/issues/{n}/comments", func(w http.ResponseWriter, _ *http.Request, n int, body string) {
		g.comments[n] = append(g.comments[n], body)
		w.WriteHeader(http.StatusCreated)
	})
	handle("PATCH /repos/o/r/issues/comments/{n}", func(_ http.ResponseWriter, _ *http.Request, n int, body string) {
		g.comments[n/1000][n%1000] = body
		g.edits++
	})
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	t.Setenv("GITHUB_API_URL", g.URL)
	return g
}

func (g *gitHub) refuse(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

// A comment is made once, and edited where the same key comes again.
func TestGitHubComment(t *testing.T) {
	g, r := newGitHub(t), newRig(t)
	token := secret(t, "ghp_mine\n")
	for i := range 120 { // of others
		g.comments[17] = append(g.comments[17], fmt.Sprint("no ", i))
	}
	for i, text := range hostile {
		r.settle(fmt.Sprint("job-", i), `,"pr":17,"repo":"evil/repo"`, text, true)
	}
	r.settle("issue", `,"issue":"18"`, "no way", false)
	require.NoError(t, r.hand("github-comment.sh", "o/r", token))
	require.Len(t, g.comments[17], 120+len(hostile))
	require.Len(t, g.comments[18], 1)
	for i, text := range hostile {
		said := g.comments[17][120+i]
		assert.Regexp(t, `\n\n<!-- heartbeat [0-9a-f]{32} -->$`, said)
		assert.Equal(t, 1, strings.Count(said, "<!-- "))
		assert.NotContains(t, said, "@e")
		assert.Zero(t, strings.Count(said, "@")-strings.Count(said, "@\u200b"))
		if len(text) < 100 {
			bare := strings.ReplaceAll(said, "\u200b", "")
			assert.True(t, strings.HasPrefix(bare, strings.TrimSuffix(text, "\n")), "%q", said)
		}
	}
	assert.Contains(t, g.comments[18][0], "This was set aside, and has no answer: failed\n\nrate_limit: no way")
	assert.Zero(t, g.edits)

	before := fmt.Sprint(g.comments)
	r.again()
	require.NoError(t, r.hand("github-comment.sh", "o/r", token))
	assert.Equal(t, before, fmt.Sprint(g.comments))
	assert.Equal(t, len(hostile)+1, g.edits)
	unharmed(t)
}

// Whom nobody asked is told nothing, and what can never be told keeps nothing back.
func TestGitHubNobodyToTell(t *testing.T) {
	g, r := newGitHub(t), newRig(t)
	for i, meta := range []string{"", `,"pr":"17/../18"`, `,"pr":"-1"`, `,"pr":"$(touch PWNED)"`, `,"pr":{"x":1}`, `,"pr":999`, `,"pr":0`} {
		r.settle(fmt.Sprint(i), meta, "x", true)
	}
	require.NoError(t, r.hand("github-comment.sh", "o/r", secret(t, "ghp_mine")))
	assert.Empty(t, append(g.comments[17], g.comments[18]...))
	unharmed(t)

	r.settle("last", `,"pr":17`, "x", true)
	for status, says := range map[int]string{403: "GitHub answered 403 Not", 404: "GitHub answered 404", 500: "GitHub answered 500"} {
		g.status = status
		err := r.hand("github-comment.sh", "o/r", secret(t, "ghp_mine"))
		require.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "\x1b")
	}
	g.status = 0
	require.ErrorContains(t, r.hand("github-comment.sh", "o/r", secret(t, "ghp_wrong")), "Bad credentials")
	require.NoError(t, r.hand("github-comment.sh", "o/r", secret(t, "ghp_mine")))
	assert.Len(t, g.comments[17], 1)
}
