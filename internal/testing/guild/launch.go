package guild

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// Program is a guild in a process of its own.
type Program struct {
	options Options
	path    string // of the program
	address string // empty before the first start
	cmd     *exec.Cmd
}

// Launch starts this test's own program as a guild. Its TestMain has to call
// [RunIfAsked]. The options need a state file if the guild is to be started again.
func Launch(o Options) (*Program, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Program{options: o, path: path}
	return p, p.Start()
}

// Start starts the guild again after [Program.Kill], on its old port.
func (p *Program) Start() error {
	listen := p.address
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	cmd := exec.Command(p.path, "-listen", listen, "-state", p.options.State, "-drain", p.options.DeadLetters,
		fmt.Sprintf("-cancelled=%t", p.options.Cancelled), fmt.Sprintf("-strict=%t", p.options.Strict))
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // why it ended is on stderr
		return fmt.Errorf("start a guild: it printed no URL: %w", err)
	}
	p.cmd, p.address = cmd, strings.TrimPrefix(strings.TrimSpace(line), "http://")
	return nil
}

// Kill kills the guild with SIGKILL and waits for its end. It may be dead already.
func (p *Program) Kill() {
	_ = p.cmd.Process.Kill() // it may have died of a fault
	_ = p.cmd.Wait()         // killed, as asked
}

// Wait waits for the guild to die of a fault.
func (p *Program) Wait() { _ = p.cmd.Wait() }

// URL is the guild's address, which stays the same over restarts.
func (p *Program) URL() string { return "http://" + p.address }

// Sessions is what the guild holds, by session id.
func (p *Program) Sessions() (map[string]Session, error) {
	resp, err := http.Get(p.URL() + "/control/sessions")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() // it was read
	var all map[string]Session
	return all, json.NewDecoder(resp.Body).Decode(&all)
}

// Expect is [Guild.Expect].
func (p *Program) Expect(id string, tools ...string) error {
	return p.post("sessions", map[string]any{"id": id, "tools": tools})
}

// AddTool is [Guild.AddTool].
func (p *Program) AddTool(t Tool) error { return p.post("tools", t) }

// Break is [Guild.Break].
func (p *Program) Break(f Fault) error { return p.post("faults", f) }

func (p *Program) post(route string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return p.send(http.MethodPost, route, text)
}

func (p *Program) send(method, route string, text []byte) error {
	req, err := http.NewRequest(method, p.URL()+"/control/"+route, bytes.NewReader(text))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // it was read
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: HTTP %d: %s", route, resp.StatusCode, said)
	}
	return err
}
