package action

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Forge is a stand-in for the comments of GitHub's pull requests and of GitLab's merge
// requests, with one of them.
type Forge struct {
	URL      string
	Token    string // the one that may write
	Login    string // who that is; empty for the token of a job, which may not ask
	ReadOnly bool
	// Beside, if there, is called before a comment is made: another job is as fast.
	Beside func()

	mu       sync.Mutex
	comments []Comment
	requests []string
}

// Comment is one of a pull request.
type Comment struct {
	ID     int    `json:"id"`
	Body   string `json:"body"`
	User   *User  `json:"user,omitempty"`   // as GitHub says it
	Author *User  `json:"author,omitempty"` // as GitLab says it
}

// User is who wrote a comment.
type User struct {
	Login    string `json:"login,omitempty"`
	Username string `json:"username,omitempty"`
	Type     string `json:"type,omitempty"`
}

// Bot is who writes with the token of a job.
var Bot = &User{Login: "github-actions[bot]", Type: "Bot"}

// NewForge serves until the test ends.
func NewForge(t interface{ Cleanup(func()) }, token string) *Forge {
	f := &Forge{Token: token}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// Put adds a comment that somebody wrote.
func (f *Forge) Put(c Comment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(c)
}

func (f *Forge) put(c Comment) Comment {
	c.ID = 1
	if n := len(f.comments); n > 0 {
		c.ID = f.comments[n-1].ID + 1
	}
	f.comments = append(f.comments, c)
	return c
}

// Comments are those that stand there.
func (f *Forge) Comments() []Comment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.comments)
}

// Requests are those that came: "POST /repos/…".
func (f *Forge) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gitlab := r.Header.Get("PRIVATE-TOKEN") != ""
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	beside := f.Beside
	if r.Method == http.MethodPost {
		f.Beside = nil
	}
	f.mu.Unlock()
	if r.Method == http.MethodPost && beside != nil {
		beside()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := func(status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // who has asked is gone, otherwise
	}
	if r.Header.Get("Authorization") != "Bearer "+f.Token && r.Header.Get("PRIVATE-TOKEN") != f.Token {
		answer(http.StatusUnauthorized, nil)
		return
	}
	me := Comment{User: Bot}
	if f.Login != "" {
		me = Comment{User: &User{Login: f.Login, Type: "User"}}
	}
	if gitlab {
		me = Comment{Author: &User{Username: f.Login}}
	}
	switch {
	case r.URL.Path == "/user" && f.Login == "", r.Method != http.MethodGet && f.ReadOnly:
		answer(http.StatusForbidden, nil)
	case r.URL.Path == "/user" && gitlab:
		answer(http.StatusOK, me.Author)
	case r.URL.Path == "/user":
		answer(http.StatusOK, me.User)
	default:
		f.comment(r, me, answer)
	}
}

// comment answers a request about comments.
func (f *Forge) comment(r *http.Request, me Comment, answer func(int, any)) {
	list := "/repos/someone/project/issues/7/comments"
	one := "/repos/someone/project/issues/comments/"
	edit := http.MethodPatch
	if me.Author != nil {
		list, one, edit = "/projects/4/merge_requests/7/notes", "/projects/4/merge_requests/7/notes/", http.MethodPut
	}
	var body Comment
	if r.Body != nil {
		_ = json.NewDecoder(r.Body).Decode(&body) // none for GET
	}
	if r.URL.Path == list {
		switch r.Method {
		case http.MethodGet:
			answer(http.StatusOK, f.page(r.URL.Query().Get("page")))
			return
		case http.MethodPost:
			me.Body = body.Body
			answer(http.StatusCreated, f.put(me))
			return
		}
	}
	name, is := strings.CutPrefix(r.URL.Path, one)
	id, err := strconv.Atoi(name)
	at := slices.IndexFunc(f.comments, func(c Comment) bool { return c.ID == id })
	switch {
	case !is || err != nil || at < 0:
		answer(http.StatusNotFound, nil)
	case r.Method == edit:
		f.comments[at].Body = body.Body
		answer(http.StatusOK, f.comments[at])
	case r.Method == http.MethodDelete:
		f.comments = slices.Delete(f.comments, at, at+1)
		answer(http.StatusOK, nil)
	default:
		answer(http.StatusMethodNotAllowed, nil)
	}
}

// page has a hundred comments at most.
func (f *Forge) page(number string) []Comment {
	n, _ := strconv.Atoi(number) // 0 for none: the first
	from := min(100*max(0, n-1), len(f.comments))
	return append([]Comment{}, f.comments[from:min(from+100, len(f.comments))]...)
}
