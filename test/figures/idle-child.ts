// An engine with nothing to do, in a process of its own: what it uses of a core, first empty, then with lanes that wait.
import { setTimeout as sleep } from 'node:timers/promises'
import { Sluice } from '../../src/index.ts'

export interface IdleFigure {
  /** Shares of a core. */
  readonly empty: number
  readonly waiting: number
  readonly lanes: number
}

const BATCH = 1_000

const [file = '', ms = '', lanes = '', settle = ''] = process.argv.slice(2)
const app = new Sluice({ store: `sqlite:${file}`, log: false })
let begun = 0
app.flow('later', { on: 'later', key: (event) => event.subject, window: { every: '1h' }, run: () => void begun++ })
await app.start()
await sleep(Number(settle))
const empty = await used(Number(ms))
let stored = 0
for (let published = 0; published < Number(lanes); published += BATCH) {
  const answers = await app.publish(
    Array.from({ length: BATCH }, (_, n) => ({ type: 'later', subject: `lane ${published + n}` })),
  )
  stored += answers.filter(({ kind }) => kind === 'stored').length
}
// The rubbish of a hundred thousand publications, and the log that is written back, are not idleness.
await sleep(Number(settle))
const waiting = await used(Number(ms))
const figure: IdleFigure = { empty, waiting, lanes: stored - begun }
process.stdout.write(`${JSON.stringify(figure)}\n`)
await app.stop()

/** The middle one of three stretches: rubbish that is cleared away once is not what it uses. */
async function used(during: number): Promise<number> {
  const shares: number[] = []
  for (let n = 0; n < 3; n++) {
    const before = process.cpuUsage()
    const began = performance.now()
    await sleep(during / 3)
    const { user, system } = process.cpuUsage(before)
    shares.push((user + system) / 1_000 / (performance.now() - began))
  }
  return shares.toSorted((one, other) => one - other)[1] ?? 1
}
