// Package crash simulates crashes, broken disks and power losses, to test code that
// changes files through package disk. Only tests import it.
//
// A [Scenario] is a set of files and a run over them in a child process, which
// is the test binary again (see [Main]):
//
//	func TestMain(m *testing.M) { crash.Main(m, map[string]func() int{"ack": ack}) }
//
//	func TestAckCrash(t *testing.T) {
//		s := crash.Scenario{
//			Setup: func(t testing.TB, dir string) { writeInbox(t, dir) },
//			Run:   func(dir string) crash.Command { return crash.Command{Name: "ack", Args: []string{dir}} },
//		}
//		check := func(t *testing.T, c crash.Crash) {
//			require.NoError(t, recovery.Run(c.Dir))
//			require.Subset(t, acknowledged(t, c.Dir), c.Promised)
//		}
//		t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
//		t.Run("full disk", func(t *testing.T) { s.EveryFail(t, unix.ENOSPC, check) })
//		t.Run("power loss", func(t *testing.T) { s.EveryPowerLoss(t, 1, 10, check) })
//	}
//
// The parts can be used directly: observers ([KillAt], [FailAt], [TearAt],
// [FailFrom]) that [Observe] sets; [Record] for the calls of a run in this process;
// [Command] for one child; [Image] for what a power loss leaves.
//
// An [Image] knows a file by the name in the call, not by its descriptor. If another
// file has got that name since, a write or sync counts as that file's.
package crash
