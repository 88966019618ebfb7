package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	recovery "heartbeat/recover"
)

// OrphanFlags are the settings of recovery, shared by hook, launcher and recover.
type OrphanFlags struct {
	Policy      string
	MaxAttempts int
	// Given says that the policy was chosen explicitly.
	Given bool
}

// Add declares the flags.
func (o *OrphanFlags) Add(f *pflag.FlagSet) {
	o.Policy = string(recovery.DeadLetter)
	policies := []string{string(recovery.DeadLetter), string(recovery.Retry), string(recovery.Drop)}
	f.Var(Choice(&o.Policy, policies...), "on-orphan", "what becomes of an entry whose session ended without answering it (of a run's: retry, unless this is given)")
	f.IntVar(&o.MaxAttempts, "max-attempts", recovery.DefaultMaxAttempts, "deliveries of one entry before retry gives up on it")
}

// Check refuses values that make no sense.
func (o *OrphanFlags) Check() error {
	if o.MaxAttempts < 1 {
		return fmt.Errorf("--max-attempts is %d: it must be 1 or more", o.MaxAttempts)
	}
	return nil
}

// Settings are the flags as package recover takes them.
func (o *OrphanFlags) Settings() recovery.Settings {
	return recovery.Settings{Policy: recovery.Policy(o.Policy), Chosen: o.Given, MaxAttempts: o.MaxAttempts}
}
