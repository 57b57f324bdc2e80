// The process that is killed. It waits until the file is free, runs what its predecessors left, and publishes without end.
// It logs everything, line by line, to a file of its own. Arguments: folder, seed, number of the life, the number
// of lines after which it asks to be killed (0: it drains the file and exits), and optionally its name.
import { openSync, writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Sluice } from '../../src/index.ts'
import { Chance, seedOf } from '../sqlite/kill-load.ts'
import { appOn } from './app.ts'
import { drained } from './drained.ts'
import { inputOf, ledgerFile, linesOf, now, type Line } from './load.ts'

const [folder = '', seed = '', number = '0', most = '0', called = ''] = process.argv.slice(2)
const life = Number(number)
const PUBLISHERS = 3
const MOST_AT_ONCE = 4
const LONGEST_PAUSE_MS = 12
const RESENT = 6
const UNTIL_FREE_MS = 3

const ledger = openSync(ledgerFile(folder, life), 'a')
const chanceOf = (name: string): Chance => new Chance(seedOf(`${seed} ${number} ${name}`))
let labels = 0
let told = 0

function tell(line: Line): void {
  // The operating system has the line when this call returns, so it survives the death of the process.
  writeSync(ledger, `${JSON.stringify(line)}\n`)
  if (++told === Number(most)) process.send?.('enough')
}

/** Only the lock of the file shows that the predecessor is dead. */
async function opened(): Promise<Sluice> {
  for (;;) {
    const options = { store: `sqlite:${join(folder, 'killed.db')}`, ...(called === '' ? {} : { process: called }) }
    const app = appOn(options, chanceOf('handlers'), tell)
    app.onAny((name, what) => {
      if (name.startsWith('run.') && 'run' in what) tell({ kind: 'told', at: now(), name, run: what.run })
    })
    try {
      await app.start()
      return app
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'STORE_IN_USE')) throw error
      await setTimeout(UNTIL_FREE_MS)
    }
  }
}

async function publishForEver(app: Sluice, chance: Chance): Promise<never> {
  for (;;) {
    const batch = Array.from({ length: 1 + chance.below(MOST_AT_ONCE) }, () => `${life}-${labels++}`)
    tell({ kind: 'sending', labels: batch })
    const answers = await app.publish(batch.map((label) => inputOf(label)))
    tell({ kind: 'acked', answers: batch.map((label, at) => [label, answers[at]?.kind ?? '']) })
    await setTimeout(chance.next() * LONGEST_PAUSE_MS)
  }
}

/** Like a careful sender, repeats every publish without a reply, and some with one, which must not count twice. */
async function sendAgain(app: Sluice, chance: Chance): Promise<void> {
  const last = wordsOf(life - 1)
  for (const label of last.unknown) await resend(app, label, 'unknown')
  const older = wordsOf(chance.below(life))
  for (let times = 0; times < RESENT; times++) {
    const { acked } = times % 2 === 0 ? last : older
    const label = acked[chance.below(acked.length)]
    if (label !== undefined) await resend(app, label, 'acked')
  }
}

async function resend(app: Sluice, label: string, was: 'acked' | 'unknown'): Promise<void> {
  const [answer] = await app.publish(inputOf(label))
  tell({ kind: 'resent', label, was, answer: answer?.kind ?? '' })
}

function wordsOf(earlier: number): { readonly acked: readonly string[]; readonly unknown: readonly string[] } {
  if (earlier < 1) return { acked: [], unknown: [] }
  const lines = linesOf(ledgerFile(folder, earlier))
  const acked = lines.flatMap((line) => (line.kind === 'acked' ? line.answers.map(([label]) => label) : []))
  const answered = new Set(acked)
  const sent = lines.flatMap((line) => (line.kind === 'sending' ? line.labels : []))
  return { acked, unknown: sent.filter((label) => !answered.has(label)) }
}

// A killed process never writes its compile cache, so the process writes it early.
flushCompileCache()
// The parent may be killed too.
process.once('disconnect', () => process.exit())
const app = await opened()
process.send?.('opened')
tell({ kind: 'opened', at: now() })
if (most === '0') {
  await drained(app, tell)
  await app.stop()
  process.disconnect()
} else {
  const publishers = Array.from({ length: PUBLISHERS }, (_, at) => publishForEver(app, chanceOf(`publisher ${at}`)))
  await Promise.all([sendAgain(app, chanceOf('again')), ...publishers])
}
