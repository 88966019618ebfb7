package command

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/cli"
)

func TestTheHookKnowsEveryVerb(t *testing.T) {
	assert.Equal(t, cli.VerbNames, cli.Names(verbs()))
}
