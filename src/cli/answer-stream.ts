// Standard output is for the answer alone: whatever the app of the configuration logs or prints goes to the other stream.
import { once } from 'node:events'
import { EXIT } from './exit.ts'

const { stdout, stderr } = process
const write = stdout.write.bind(stdout)

export function writeAnswer(text: string): void {
  write(text, endIfUnwritten)
}

/** For who writes much: resolves when there is room for more. */
export async function roomForMore(): Promise<void> {
  if (stdout.writableNeedDrain) await once(stdout, 'drain')
}

export function endWhenUnwritten(): void {
  stdout.on('error', endIfUnwritten)
}

let isEnding = false

/** `sluice dead list | head`: what nobody reads is no failure. What could not be written is, and ends the program. */
function endIfUnwritten(error?: NodeJS.ErrnoException | null): void {
  if (error === undefined || error === null || isEnding) return
  if (error.code === 'EPIPE') process.exit(EXIT.done)
  isEnding = true
  stderr.write(`The answer could not be written: ${error.message}\n`, () => process.exit(EXIT.failed))
}

/** From now on, for everybody else. */
export function keepForAnswers(): void {
  stdout.write = stderr.write.bind(stderr)
}

/** Ends the process once everything is written. */
export function leave(code: number): void {
  write('', () => stderr.write('', () => process.exit(code)))
}
