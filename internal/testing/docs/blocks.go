package docs

import (
	"fmt"
	"os"
	"strings"
)

// Block is what stands between two fences of a document.
type Block struct {
	Language, Text string
}

// Split reads a Markdown file, and tells its fenced blocks from its prose.
func Split(path string) (blocks []Block, prose string, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	var inside *Block
	for line := range strings.Lines(string(raw)) {
		language, fence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case fence && inside == nil:
			inside = &Block{Language: language}
		case fence:
			blocks, inside = append(blocks, *inside), nil
		case inside != nil:
			inside.Text += line
		default:
			prose += line
		}
	}
	if inside != nil {
		return nil, "", fmt.Errorf("%s: a block has no end", path)
	}
	return blocks, prose, nil
}
