#!/usr/bin/env node
// The entry point of the command line. exit.ts lists the exit codes.
import { exitAfterFlush } from './output.ts'
import { EXIT } from './exit.ts'
import { runCommand } from './run-command.ts'

try {
  const { exit, isLongRunning: isLasting } = await runCommand(process.argv.slice(2))
  process.exitCode = exit
  // Open handles of the configuration would keep a command alive that only made a call, or an app that failed to start.
  if (isLasting !== true || exit !== EXIT.done) exitAfterFlush(exit)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  exitAfterFlush(EXIT.failed)
}
