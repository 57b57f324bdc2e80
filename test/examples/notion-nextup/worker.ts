// One of several processes that serve NextUp on one PostgreSQL. What it does it writes down before it goes on, so that a
// `kill -9` cannot take that away. Arguments: store, address of the stand-in, its own diary, and the numbers as JSON.
import { openSync, writeSync } from 'node:fs'
import { Sluice, type EventMap } from 'sluice'
import { nextUp, notionClient } from '../../../examples/notion-nextup/nextup.ts'
import { Lag } from '../../../examples/notion-nextup/stand-in/lag.ts'
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

/** A line of the diary. Times are on the clock that all processes of the machine share. */
export type Line =
  | (Claimed & { readonly what: 'claimed' })
  /** And how late this process was at most, so far. */
  | { readonly what: 'called'; readonly at: number; readonly lag: number }
  | { readonly what: 'ended'; readonly run: string; readonly ms: number; readonly how: string }

/** What it says to whoever started it. */
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

// The last moment at which this process has to do with a call: what comes after is on the way, and at the other side.
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

// One process at a time ranks. So each asks now and then who it is: calls come from all of them at once, under the one limit.
const beside = new Sluice({ store, log: false })
const client = notionClient(beside, settings)
const asking = setInterval(() => {
  // What waits for its slot when the process is told to stop is not asked.
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
// Being begun takes a while, and nothing is called meanwhile.
lag = new Lag()
say({ url })
