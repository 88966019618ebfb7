package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"time"
)

// seedInGo is what the script does, with our library.
func seedInGo(ctx context.Context, path, lines string, from int) (took sample, err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"PRAGMA journal_mode = WAL",
		"CREATE TABLE IF NOT EXISTS books_animator_transcripts (id TEXT PRIMARY KEY, content TEXT NOT NULL)",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	write, err := db.PrepareContext(ctx, "INSERT OR REPLACE INTO books_animator_transcripts (id, content) VALUES (?, ?)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, write.Close()) }()
	all, err := os.ReadFile(lines)
	if err != nil {
		return nil, err
	}
	var messages []any
	in := bufio.NewScanner(bytes.NewReader(all))
	for in.Scan() {
		start := time.Now()
		var m any
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return nil, err
		}
		messages = append(messages, m)
		content, err := json.Marshal(map[string]any{"id": "ses-1", "messages": messages})
		if err != nil {
			return nil, err
		}
		if _, err := write.ExecContext(ctx, "ses-1", string(content)); err != nil {
			return nil, err
		}
		if len(messages) >= from {
			took = append(took, time.Since(start))
		}
	}
	return took, in.Err()
}
