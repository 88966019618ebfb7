package guild

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// event is a line of the state file. The last one of a session or tool counts.
type event struct {
	Session *Session `json:"session,omitempty"`
	Tool    *Tool    `json:"tool,omitempty"`
}

func (g *Guild) save(s *Session) { g.append(event{Session: s}) }

// append adds a line in one write, so that a kill leaves it whole or not at all.
func (g *Guild) append(e event) {
	if g.file == nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = g.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err) // a guild that forgets would make tests lie
	}
}

func (g *Guild) replay() error {
	f, err := os.Open(g.options.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil // what a kill cut off was never answered
		}
		if err != nil {
			return err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read %s, line %d: %w", g.options.State, n, err)
		}
		switch {
		case e.Session != nil:
			if e.Session.Calls == nil {
				e.Session.Calls = map[string]int{}
			}
			g.sessions[e.Session.ID] = e.Session
		case e.Tool != nil:
			g.tools[e.Tool.Name] = *e.Tool
		}
	}
}
