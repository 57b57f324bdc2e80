// An idle engine in a process of its own: measures its share of a core, first empty, then with waiting lanes.
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
// Garbage of a hundred thousand publishes and the write-back of the log do not belong to the idle time.
await sleep(Number(settle))
const waiting = await used(Number(ms))
const figure: IdleFigure = { empty, waiting, lanes: stored - begun }
process.stdout.write(`${JSON.stringify(figure)}\n`)
await app.stop()

/** The median of three periods, so that a single garbage collection does not count. */
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
