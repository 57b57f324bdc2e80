// Runs NextUp on one PostgreSQL with several processes while many users edit in random bursts, and kills some processes in the
// middle of a run. Then it checks what became of the edits, and what NextUp guarantees about them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sluice, systemClock } from 'sluice'
import { chance as chanceOf } from '../../../examples/kit/chance.ts'
import { serveHandler } from '../../../examples/kit/http.ts'
import { bursts } from '../../../examples/notion-nextup/scenarios/bursts.ts'
import { inversions, jain, meanResponses, overlaps, unranked } from '../../../examples/notion-nextup/scenarios/judge.ts'
import { NotionStandIn } from '../../../examples/notion-nextup/stand-in/notion.ts'
import { closest, mostInASecond } from '../../../examples/notion-nextup/stand-in/rate.ts'
import { standInSettings } from '../../../examples/notion-nextup/stand-in/settings.ts'
import {
  actionWebhook,
  deliverTo,
  integrationWebhook,
  type Webhook,
} from '../../../examples/notion-nextup/stand-in/webhooks.ts'
import { Crew } from './crew.ts'
import { doorman } from './doorman.ts'
import type { WorkerNumbers } from './worker.ts'

export interface StressOptions {
  /** The address of an empty PostgreSQL. */
  readonly store: string
  readonly seed: number
  readonly processes: number
  readonly users: number
  /** How long users edit. */
  readonly ms: number
  readonly mostBursts: number
  /** The times of the kills, from the start of the edits. Each hits a process in the middle of a run; the first one is killed again. */
  readonly kills: readonly number[]
  /** The maximum time until everything is done after the last edit. */
  readonly drain: number
  readonly numbers: WorkerNumbers
  readonly progress?: (text: string) => void
}

export interface StressFigure {
  readonly edits: number
  readonly turns: number
  /** The number of runs of each process that replaced a killed one. */
  readonly byProcess: readonly number[]
  /** The number of the killed process, for each kill. */
  readonly killed: readonly number[]
  /** Runs that a kill cut off. */
  readonly cutOff: number
  readonly calls: number
  /** Users whose last edit is not reflected in their tasks. */
  readonly unranked: readonly string[]
  readonly stillWaiting: number
  readonly deadLetters: number
  readonly overlaps: number
  readonly inversions: number
  readonly mostInASecond: number
  /** The smallest time between a call and the third after it, in ms. */
  readonly closest: number
  /** The same, by the times at which processes handed the calls over. */
  readonly closestHanded: number
  /** How late the doorman's clock was read at most. */
  readonly doormanLag: number
  /** How late the processes were at most: a call may leave that much later than it was handed over. */
  readonly processLag: number
  readonly refused: number
  readonly jain: number
  /** The waiting times, in seconds. */
  readonly longestWait: number
  readonly seconds: number
}

const RATE = 3
/** One second, minus the stand-in's tolerance. The test checks the whole second at the doorman. */
const WINDOW = 850
const TASKS_EACH = 2
/** One in this many users has no automation. */
const TOLD = 4
const FLOWS = ['read-page', 'rank-user'] as const
const RESTART_AFTER = 1_000

export async function stress(options: StressOptions): Promise<StressFigure> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-nextup-'))
  const chance = chanceOf(options.seed).unit
  const notion = new NotionStandIn({ clock: systemClock, latency: [60, 180], chance, rate: RATE, window: WINDOW })
  const server = await serveHandler(notion.fetch)
  const door = await doorman(server.url)
  const crew = new Crew({ store: options.store, notion: door.url, folder, numbers: options.numbers })
  const onlooker = new Sluice({ store: options.store, log: false })
  const began = systemClock.monotonic()
  try {
    // The first process creates the tables.
    await crew.start(0)
    await Promise.all(Array.from({ length: options.processes - 1 }, (_, n) => crew.start(n + 1)))
    const edits = await edited(options, notion, crew)
    const stillWaiting = await drained(onlooker, options)
    const { items: dead } = await onlooker.admin.deadLetters.list()
    await crew.stop()
    const turns = crew.turns()
    const { times, lag } = await door.noted()
    return {
      edits,
      turns: turns.length,
      byProcess: crew.turnsByProcess(),
      killed: crew.killed,
      cutOff: turns.filter((turn) => turn.cutOff).length,
      calls: times.length,
      unranked: unranked(notion.pages.values(), systemClock.now(), standInSettings('').calendarOf),
      stillWaiting,
      deadLetters: dead.length,
      overlaps: overlaps(turns),
      inversions: inversions(turns),
      mostInASecond: mostInASecond(times),
      closest: Math.round(closest(times, RATE)),
      closestHanded: Math.round(closest(crew.handed(), RATE)),
      doormanLag: Math.round(lag),
      processLag: Math.round(crew.lag()),
      refused: notion.calls.filter(({ status }) => status === 429).length,
      jain:
        Math.round(jain(meanResponses(turns.map((turn) => ({ ...turn, due: turn.began - turn.late })))) * 100) / 100,
      longestWait: Math.round(Math.max(...turns.map(({ late }) => late)) / 1_000),
      seconds: Math.round((systemClock.monotonic() - began) / 1_000),
    }
  } finally {
    crew.killAll()
    await onlooker.stop()
    await door.stop()
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** All users edit at their times, while processes are killed and replaced. Returns the number of edits. */
async function edited(options: StressOptions, notion: NotionStandIn, crew: Crew): Promise<number> {
  const { users, ms, mostBursts, progress = () => {} } = options
  const chance = chanceOf(options.seed + 1).unit
  const edits = bursts(notion, { users, tasksEach: TASKS_EACH, within: ms, mostBursts, chance })
  const began = systemClock.monotonic()
  const until = (at: number): Promise<void> => sleep(Math.max(0, at - (systemClock.monotonic() - began)))
  const killing = Promise.all(
    options.kills.map(async (at) => {
      await until(at)
      const slot = await crew.killBusy()
      progress(
        `killed process ${slot} in the middle of a run after ${Math.round((systemClock.monotonic() - began) / 1_000)} s`,
      )
      await sleep(RESTART_AFTER)
      await crew.start(slot)
    }),
  )
  const sending: Promise<void>[] = []
  for (const { at, page, importance, by } of edits) {
    await until(at)
    notion.edit(page.id, { importance }, by)
    // Some users have no automation, so that the integration gets webhooks: one process reads the pages, and another ranks the users.
    const change = { page, by, at: systemClock.now(), properties: [] }
    const isTold = Number(by.id.split('-')[1]) % TOLD === 0
    sending.push(delivered(crew, isTold ? integrationWebhook(change) : actionWebhook(page), chance))
  }
  await Promise.all([killing, ...sending])
  // One process is killed a second time, busy or idle: mostly it waits, because its work was taken over.
  const [first = 0] = crew.killed
  await crew.kill(first)
  progress(`killed process ${first} for the second time`)
  await crew.start(first)
  progress(`${edits.length} edits were made`)
  return edits.length
}

const AGAIN_AFTER = 200

/** Like Notion with a balancer: sends a webhook that was not accepted again, to a live process. */
async function delivered(crew: Crew, webhook: Webhook, chance: () => number): Promise<void> {
  for (;;) {
    const { addresses } = crew
    const url = addresses[Math.floor(chance() * addresses.length)]
    const status = url === undefined ? 0 : await deliverTo(url)(webhook).catch(() => 0)
    if (status === 200) return
    await sleep(AGAIN_AFTER)
  }
}

const TOLD_EVERY = 25

/** Waits until no lane waits or runs. Returns how many lanes still do. */
async function drained(onlooker: Sluice, { drain, progress = () => {} }: StressOptions): Promise<number> {
  const until = systemClock.monotonic() + drain
  for (let said = 0; ;) {
    const lanes = await Promise.all(FLOWS.map((flow) => onlooker.admin.lanes.list({ flow }, '', 1_000)))
    const items = lanes.flatMap((page) => page.items)
    if (items.length === 0 || systemClock.monotonic() > until) return items.length
    if (Math.abs(items.length - said) >= TOLD_EVERY) {
      said = items.length
      progress(`${said} lanes wait`)
    }
    await sleep(250)
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.after(ms, resolve))
}
