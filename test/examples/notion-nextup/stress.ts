// NextUp on one PostgreSQL with several processes, of which some are killed in the middle of a run, while many users edit in
// random bursts: what became of their edits, and of what is promised about them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sluice, systemClock } from 'sluice'
import { bursts, chanceOf } from '../../../examples/notion-nextup/scenarios/bursts.ts'
import { inversions, jain, meanResponses, overlaps, unranked } from '../../../examples/notion-nextup/scenarios/judge.ts'
import { sleep } from '../../../examples/notion-nextup/scenarios/stage.ts'
import { NotionStandIn } from '../../../examples/notion-nextup/stand-in/notion.ts'
import { closest, mostInASecond } from '../../../examples/notion-nextup/stand-in/rate.ts'
import { serveStandIn } from '../../../examples/notion-nextup/stand-in/server.ts'
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
  /** Of an empty PostgreSQL. */
  readonly store: string
  readonly seed: number
  readonly processes: number
  readonly users: number
  /** Edits come for so long. */
  readonly ms: number
  readonly mostBursts: number
  /** From the beginning of the edits. Each kills whoever is in the middle of a run; the first one of them dies once more. */
  readonly kills: readonly number[]
  /** How long everything may take once nobody edits any more. */
  readonly drain: number
  readonly numbers: WorkerNumbers
  readonly progress?: (text: string) => void
}

export interface StressFigure {
  readonly edits: number
  readonly turns: number
  /** Turns of each, of who took the place of one that was killed together with it. */
  readonly byProcess: readonly number[]
  /** Which of the processes was killed, each time. */
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
  /** Of any four calls that follow each other, the least from the first to the last, in ms. */
  readonly closest: number
  /** The same, by when processes handed them over. */
  readonly closestHanded: number
  /** How late the one who notes when calls come was at most. */
  readonly doormanLag: number
  /** And how late processes were: a call may leave so much later than it was handed over. */
  readonly processLag: number
  readonly refused: number
  readonly jain: number
  /** In line, in seconds. */
  readonly longestWait: number
  readonly seconds: number
}

const RATE = 3
/** A second, but for what the stand-in may be late by. What is judged is the whole second, at its door. */
const WINDOW = 850
const TASKS_EACH = 2
/** Every so many-th user. */
const TOLD = 4
const FLOWS = ['read-page', 'rank-user'] as const
const RESTART_AFTER = 1_000

export async function stress(options: StressOptions): Promise<StressFigure> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-nextup-'))
  const chance = chanceOf(options.seed)
  const notion = new NotionStandIn({ clock: systemClock, latency: [60, 180], chance, rate: RATE, window: WINDOW })
  const server = await serveStandIn(notion)
  const door = await doorman(server.url)
  const crew = new Crew({ store: options.store, notion: door.url, folder, numbers: options.numbers })
  const onlooker = new Sluice({ store: options.store, log: false })
  const began = systemClock.monotonic()
  try {
    // The first makes the tables.
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

/** Everybody edits when it is time to; beside that, processes die and others take their places. Says how many edits there were. */
async function edited(options: StressOptions, notion: NotionStandIn, crew: Crew): Promise<number> {
  const { users, ms, mostBursts, progress = () => {} } = options
  const chance = chanceOf(options.seed + 1)
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
    // Some have no automation, so that the integration is told: pages are then read by one process, and users ranked by another.
    const change = { page, by, at: systemClock.now(), properties: [] }
    const isTold = Number(by.id.split('-')[1]) % TOLD === 0
    sending.push(delivered(crew, isTold ? integrationWebhook(change) : actionWebhook(page), chance))
  }
  await Promise.all([killing, ...sending])
  // One dies for the second time, whatever it does: mostly it waits, for who has taken over its work keeps it.
  const [first = 0] = crew.killed
  await crew.kill(first)
  progress(`killed process ${first} for the second time`)
  await crew.start(first)
  progress(`${edits.length} edits were made`)
  return edits.length
}

const AGAIN_AFTER = 200

/** As Notion does behind a balancer: what was not taken is sent again, to whoever lives. */
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

/** Until nothing waits or runs any more. Says how many lanes still do. */
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
