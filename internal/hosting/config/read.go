package config

import (
	"context"
	"fmt"
	"io"
)

// MaxSize is the largest configuration, in bytes.
const MaxSize = 64 << 20

// Read reads a configuration to its end. What is empty, too large or does not end
// before ctx is a [*Problem]; after the latter a goroutine still reads r.
func Read(ctx context.Context, r io.Reader) ([]byte, error) {
	type outcome struct {
		text []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
		read <- outcome{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, &Problem{Reason: "on stdin did not end in time: write one JSON object and close it"}
	case o := <-read:
		switch {
		case o.err != nil:
			return nil, fmt.Errorf("read the config: %w", o.err)
		case len(o.text) > MaxSize:
			return nil, tooLarge()
		}
		return o.text, nil
	}
}

func tooLarge() *Problem { return &Problem{Reason: "on stdin is larger than 64 MiB"} }
