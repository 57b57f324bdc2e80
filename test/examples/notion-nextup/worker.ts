// One of several processes that serve NextUp on one PostgreSQL. It logs each step before it continues, so that the log survives
// `kill -9`. Arguments: store, address of the stand-in, its own log file, and the numbers as JSON.
import { openSync, writeSync } from 'node:fs'
import { Sluice, type EventMap } from 'sluice'
import { nextUp, notionClient } from '../../../examples/notion-nextup/nextup.ts'
import { Lag } from '../../../examples/kit/lag.ts'
import { standInSettings } from '../../../examples/notion-nextup/stand-in/settings.ts'

export interface WorkerNumbers {
  readonly lease: number
  readonly debounce: { readonly from: number; readonly to: number; readonly page: number }
}

interface Claimed {
  readonly run: string
  readonly user: string
  /** When the user became ready, by the store's clock, and how long ago that was. */
  readonly due: number
  readonly late: number
  readonly at: number
}

/** A line of the log. Times are from the clock that all processes of the machine share. */
export type Line =
  | (Claimed & { readonly what: 'claimed' })
  /** How late this process was at most, so far. */
  | { readonly what: 'called'; readonly at: number; readonly lag: number }
  | { readonly what: 'ended'; readonly run: string; readonly ms: number; readonly how: string }

/** The messages to the parent. */
export type Said = { readonly url: string } | { readonly busy: boolean }

const ASKS_EVERY = 6_000

const [store = '', notion = '', diary = '', given = '{}'] = process.argv.slice(2)
const { lease, debounce } = JSON.parse(given) as WorkerNumbers
const file = openSync(diary, 'a')

function write(line: Line): void {
  writeSync(file, `${JSON.stringify(line)}\n`)
}

function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

// From here on, the call is out of the hands of this process.
let lag: Lag | undefined
const { fetch } = globalThis
globalThis.fetch = (...call) => {
  write({ what: 'called', at: now(), lag: lag?.most ?? 0 })
  return fetch(...call)
}

function say(what: Said): void {
  process.send?.(what)
}

const settings = { ...standInSettings(notion), store, debounce }
const app = nextUp(settings, {
  log: false,
  lease,
  heartbeat: Math.floor(lease / 4),
  shutdownTimeout: '5s',
  addressRate: { rate: Infinity, per: '1m' },
})

app.on('run.claimed', ({ flow, key: user, run, due, late }) => {
  if (flow !== 'rank-user') return
  write({ what: 'claimed', run, user, due, late, at: now() })
  say({ busy: true })
})
for (const how of ['run.done', 'run.snoozed', 'run.deferred', 'run.retry', 'run.dead', 'run.lost'] as const) {
  app.on(how, ({ flow, run, ms }: EventMap[typeof how]) => {
    if (flow !== 'rank-user') return
    write({ what: 'ended', run, ms, how })
    say({ busy: false })
  })
}

// Only one process ranks at a time. So each process sometimes calls "who am I", so that all of them call under the one limit.
const beside = new Sluice({ store, log: false })
const client = notionClient(beside, settings)
const asking = setInterval(() => {
  // A call that waits for its slot when the process stops is rejected.
  client.users.me({}).catch((error: unknown) => {
    if (!isStopped) throw error
  })
}, ASKS_EVERY)
let isStopped = false

process.on('message', () => {
  isStopped = true
  clearInterval(asking)
  void Promise.all([app.stop(), beside.stop()]).then(() => process.disconnect())
})
process.once('disconnect', () => process.exit())

await app.start()
const { url } = await app.listen({ port: 0, host: '127.0.0.1' })
// Starting takes a while, during which nothing is called.
lag = new Lag()
say({ url })
