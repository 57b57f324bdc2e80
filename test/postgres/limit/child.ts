// One of several processes that share a limit. It makes each call as soon as the limit allows, and blocks when told to.
// Arguments: address of the store, address of the receiver.
import { Sluice } from '../../../src/index.ts'
import { PER, RATE } from '../../figures/limit-load.ts'

export const CALL = 'call'

/** The report of the process when it has no more work. */
export interface Sent {
  /** When each call was passed on, on the clock that all processes share. */
  readonly handed: readonly number[]
  readonly failed: number
  readonly putOff: number
}

const [store = '', url = ''] = process.argv.slice(2)
const handed: number[] = []
let failed = 0
let putOff = 0

const { fetch } = globalThis
globalThis.fetch = (...call) => {
  handed.push(Number(process.hrtime.bigint()) / 1e6)
  return fetch(...call)
}

// So few runs that no process takes all of them.
const RUNS_AT_ONCE = 6

const app = new Sluice({ store, log: false, shutdownTimeout: '2s', maxConcurrentRuns: RUNS_AT_ONCE })
const api = app.limit('api', { rate: RATE, per: `${PER}ms`, maxWait: '10s' })
app.flow(CALL, {
  on: CALL,
  run: async () => {
    const response = await api.fetch(url)
    await response.text()
  },
})
app.on('run.deferred', () => putOff++)
app.on('run.retry', () => failed++)
app.on('run.dead', () => failed++)

process.on('message', (asked: number | 'stop') => {
  if (asked === 'stop') void stop()
  else standStill(asked)
})
process.once('disconnect', () => process.exit())

function standStill(ms: number): void {
  const from = performance.now()
  while (performance.now() < from + ms);
}

async function stop(): Promise<void> {
  const said: Sent = { handed: [...handed], failed, putOff }
  await app.stop()
  process.send?.(said, undefined, {}, () => process.disconnect())
}

await app.start()
process.send?.('started')
