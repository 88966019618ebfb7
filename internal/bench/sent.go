package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// message is the i-th text of a writer.
func message(writer, i int) string { return padded(messageHead(writer, i)) }

func messageHead(writer, i int) string { return fmt.Sprintf("writer %d message %09d ", writer, i) }

// verify checks that the file has n messages of each writer, complete and in the order
// in which it sent them, and nothing else.
func (p *producer) verify(n int) error {
	content, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(content, []byte("\n")) {
		return fmt.Errorf("%s does not end in a newline", p.file)
	}
	var next [writers]int
	for line := range bytes.Lines(content) {
		text, err := p.text(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return fmt.Errorf("%w: %.60q", err, line)
		}
		var writer, i int
		if _, err := fmt.Sscanf(text, "writer %d message %d ", &writer, &i); err != nil || writer < 0 || writer >= writers {
			return fmt.Errorf("not a message: %.60q", line)
		}
		if i != next[writer] || text != message(writer, i) {
			return fmt.Errorf("torn, lost or out of order: %.60q where message %d of its writer belongs", line, next[writer])
		}
		next[writer]++
	}
	for w, got := range next {
		if got != n {
			return fmt.Errorf("%d of writer %d's %d messages are there", got, w, n)
		}
	}
	return nil
}

// promptOf returns the text in a line that `send` wrote.
func promptOf(line []byte) (string, error) {
	var e struct {
		ID     string `json:"id"`
		Prompt string `json:"prompt"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return "", err
	}
	if e.ID == "" {
		return "", fmt.Errorf("an entry without an id")
	}
	return e.Prompt, nil
}

func plainText(line []byte) (string, error) { return string(line), nil }
