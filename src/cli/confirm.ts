// Asks the person at the terminal before something that cannot be undone. Where nobody is, only --yes will do.
import { createInterface } from 'node:readline/promises'
import { plain } from './output.ts'
import type { Scene } from './command.ts'
import { EXIT, type Exit } from './exit.ts'

/** Undefined: go on. Else how the program ends. */
export async function unconfirmed({ given, out, signal }: Scene, question: string): Promise<Exit | undefined> {
  if (given.is('yes')) return undefined
  if (!process.stdin.isTTY) {
    out.note(`${plain(question)} Nobody is here to be asked: say --yes.`)
    return EXIT.usage
  }
  const asking = createInterface({ input: process.stdin, output: out.stderr })
  try {
    const said = await asking.question(`${plain(question)} [y/N] `, { signal })
    if (/^y(?:es)?$/i.test(said.trim())) return undefined
    out.note('Nothing was done.')
    return EXIT.failed
  } finally {
    asking.close()
  }
}
