// Asks the person at the terminal before something that cannot be undone. Where nobody is, only --yes will do.
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { plain } from './output.ts'
import type { Scene } from './command.ts'
import type { Exit } from './exit.ts'
import { refuse } from './problem.ts'

/** Undefined: go on. Else how the program ends. */
export async function unconfirmed({ given, out }: Scene, question: string): Promise<Exit | undefined> {
  if (given.is('yes')) return undefined
  if (!process.stdin.isTTY) {
    return refuse(out, 'YES_NEEDED', plain(question), 'Nobody is here to be asked: say --yes.')
  }
  const asking = createInterface({ input: process.stdin, output: out.stderr })
  try {
    // Who ends the question by Ctrl-C or Ctrl-D has not said yes.
    const closed = once(asking, 'close').then(() => '')
    const said = await Promise.race([asking.question(`${plain(question)} [y/N] `).catch(() => ''), closed])
    if (/^y(?:es)?$/i.test(said.trim())) return undefined
    return refuse(out, 'NOT_CONFIRMED', 'Nothing was done.')
  } finally {
    asking.close()
  }
}
