// `node examples/welltrack/backfill.ts <profile>`: asks for the past of a person, and follows the data as it arrives.
import { systemClock } from 'sluice'
import { backfillCommand } from './backfill-command.ts'

const interrupt = new AbortController()
process.once('SIGINT', () => interrupt.abort())
process.exitCode = await backfillCommand(process.argv.slice(2), {
  env: process.env,
  clock: systemClock,
  stderr: process.stderr,
  signal: interrupt.signal,
  fetch,
})
