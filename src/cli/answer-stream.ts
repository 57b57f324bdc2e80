// Standard output is for the answer alone: whatever the app of the configuration logs or prints goes to the other stream.
import { once } from 'node:events'

const { stdout, stderr } = process
const write = stdout.write.bind(stdout)

export function writeAnswer(text: string): void {
  write(text)
}

/** For much of it: resolves when there is room for more. */
export async function writeMuch(text: string): Promise<void> {
  if (!write(text)) await once(stdout, 'drain')
}

/** From now on, for everybody else. */
export function keepForAnswers(): void {
  stdout.write = stderr.write.bind(stderr)
}

/** Ends the process once everything is written. */
export function leave(code: number): void {
  write('', () => stderr.write('', () => process.exit(code)))
}
