package prompt_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/prompt"
)

var update = flag.Bool("update", false, "write the golden texts anew")

// TestGolden has a test for each file of testdata: what is asked for, and the text
// that comes of it. What is asked for is an effect (with its task.json), perhaps in a
// later attempt, a completion or a failure.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			require.NoError(t, err)
			files := map[string]string{}
			for _, f := range archive.Files {
				files[f.Name] = string(f.Data)
			}
			got := written(t, files)
			if *update {
				archive.Files = append(without(archive.Files, "text"), txtar.File{Name: "text", Data: []byte(got)})
				require.NoError(t, os.WriteFile(path, txtar.Format(archive), 0o600))
				return
			}
			assert.Equal(t, files["text"], got)
		})
	}
}

func without(files []txtar.File, name string) (rest []txtar.File) {
	for _, f := range files {
		if f.Name != name {
			rest = append(rest, f)
		}
	}
	return rest
}

func written(t *testing.T, files map[string]string) string {
	t.Helper()
	var of struct {
		RunID, RunDir, Proof, OutputFile, Error string
		Asks                                    bool
	}
	if read(t, files, "completion", &of) {
		return prompt.Completion(of.RunID, of.Proof, of.OutputFile)
	}
	if read(t, files, "failure", &of) {
		return prompt.Failure(of.RunID, of.RunDir, of.Error, of.Asks)
	}
	var e prompt.Effect
	require.True(t, read(t, files, "effect", &e), "nothing is asked for")
	e.Program = cmp.Or(e.Program, "heartbeat")
	e.Task = []byte(files["task.json"])
	attempt := 1
	read(t, files, "attempt", &attempt)
	return delivered(t, e, attempt)
}

// delivered is what the agent reads of an effect's entry.
func delivered(t *testing.T, e prompt.Effect, attempt int) string {
	t.Helper()
	id, err := json.Marshal(e.ID)
	require.NoError(t, err)
	return effect.Text(inbox.Entry{Text: e.Text(), Attempt: attempt, Metadata: map[string]json.RawMessage{
		effect.MetaRunDir: json.RawMessage(`"/run"`), effect.MetaEffect: id,
	}})
}

func read(t *testing.T, files map[string]string, name string, v any) bool {
	t.Helper()
	content, ok := files[name]
	if ok {
		require.NoError(t, json.Unmarshal([]byte(content), v))
	}
	return ok
}
