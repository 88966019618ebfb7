package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	maxSchema = 1 << 20
	maxDepth  = 200 // of schemas and of values: the library recurses once for each level
)

// decode reads one JSON text, and refuses anything after it.
func decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if err = d.Decode(&v); err == io.EOF {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("not JSON: there is something after the first value")
	}
	if deeper(v, maxDepth) {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	return v, nil
}

// deeper reports whether something in v lies more than n levels deep.
func deeper(v any, n int) bool {
	if n < 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if deeper(e, n-1) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if deeper(e, n-1) {
				return true
			}
		}
	}
	return false
}
