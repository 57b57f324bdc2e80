#!/usr/bin/env node
// The command line. How it ends is in exit.ts: 0 done, 1 it failed, 2 it was asked something it does not know.
import { leave } from './answer-stream.ts'
import { runCommand } from './run-command.ts'

try {
  const { exit, isLasting } = await runCommand(process.argv.slice(2))
  process.exitCode = exit
  // What the configuration has opened for its handlers would keep a command that only asked.
  if (isLasting !== true) leave(exit)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
