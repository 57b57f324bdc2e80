#!/usr/bin/env node
// The entry point of the command line. exit.ts lists the exit codes.
import { assertNodeVersion } from '../validate/node-version.ts'
import { EXIT } from './exit.ts'

// The commands import modules that an older Node does not have, so they are loaded after the check.
try {
  assertNodeVersion()
  const { exitAfterFlush } = await import('./output.ts')
  const { runCommand } = await import('./run-command.ts')
  const { exit, isLongRunning } = await runCommand(process.argv.slice(2))
  process.exitCode = exit
  // Open handles of the configuration would keep a command alive that only made a call, or an app that failed to start.
  if (isLongRunning !== true || exit !== EXIT.done) exitAfterFlush(exit)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`, () => process.exit(EXIT.failed))
}
