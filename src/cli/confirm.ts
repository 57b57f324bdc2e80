// Asks for confirmation before an action that cannot be undone. Without a terminal, only `--yes` confirms it.
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { escapeText } from './output.ts'
import type { CommandContext } from './command.ts'
import type { ExitCode } from './exit.ts'
import { reportCliError } from './problem.ts'

/** `confirmOrExit` returns undefined to go on, or the exit code. */
export async function confirmOrExit(
  { args: given, output: out }: CommandContext,
  question: string,
): Promise<ExitCode | undefined> {
  if (given.has('yes')) return undefined
  if (!process.stdin.isTTY) {
    return reportCliError(out, 'YES_NEEDED', escapeText(question), 'There is no terminal to ask on: pass --yes.')
  }
  const asking = createInterface({ input: process.stdin, output: out.stderr })
  try {
    // Ctrl-C or Ctrl-D at the question means no.
    const closed = once(asking, 'close').then(() => '')
    const said = await Promise.race([asking.question(`${escapeText(question)} [y/N] `).catch(() => ''), closed])
    if (/^y(?:es)?$/i.test(said.trim())) return undefined
    return reportCliError(out, 'NOT_CONFIRMED', 'Nothing was done.')
  } finally {
    asking.close()
  }
}
