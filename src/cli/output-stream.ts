// Reserves standard output for the command's result. What the configured app logs or prints goes to standard error.
import { once } from 'node:events'
import { EXIT } from './exit.ts'

const { stdout, stderr } = process
const write = stdout.write.bind(stdout)

export function writeOutput(text: string): void {
  write(text, handleWriteError)
}

/** `waitForDrain` resolves when standard output can take more. */
export async function waitForDrain(): Promise<void> {
  if (stdout.writableNeedDrain) await once(stdout, 'drain')
}

export function exitOnWriteError(): void {
  stdout.on('error', handleWriteError)
}

let isEnding = false

/** A closed pipe, as in `sluice dead list | head`, is not a failure. Any other write error ends the program. */
function handleWriteError(error?: NodeJS.ErrnoException | null): void {
  if (error === undefined || error === null || isEnding) return
  if (error.code === 'EPIPE') process.exit(EXIT.done)
  isEnding = true
  stderr.write(`The answer could not be written: ${error.message}\n`, () => process.exit(EXIT.failed))
}

/** `redirectStdout` sends everything that other code prints from now on to standard error. */
export function redirectStdout(): void {
  stdout.write = stderr.write.bind(stderr)
}

/** `exitAfterFlush` ends the process once everything is written. */
export function exitAfterFlush(code: number): void {
  write('', () => stderr.write('', () => process.exit(code)))
}
