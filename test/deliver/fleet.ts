// Runs the fleet once: it publishes events to twenty endpoints, kills workers meanwhile, and checks the log. `npm run
// test:faults` uses 2,000 events, `npm run prove -- deliver-fleet` 50,000.
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { chance } from '../../examples/kit/chance.ts'
import { fleetApp, type FleetStore } from './fleet-app.ts'
import { complaintsOf, p99, type Letter } from './fleet-check.ts'
import { Crew } from './fleet-workers.ts'
import { FLEET, LEASE, MAX_EVENTS, plannedOf, wantedBy } from './fleet-plan.ts'
import type { Written } from './fleet-endpoints.ts'

export interface FleetOptions {
  /** An empty folder. */
  readonly folder: string
  readonly events: number
  /** How many workers are killed. */
  readonly kills: number
  readonly seed: number
  /** Whether all endpoints behave like healthy ones. */
  readonly isCalm?: boolean
  /** The first events are not measured, because code is compiled and connections are opened meanwhile. */
  readonly warmUp?: number
  /** The pause between two portions of events. Default: none. */
  readonly pause?: number
  /** The store and its number of concurrent workers. Default: a file in the folder. */
  readonly store?: { readonly url: string; readonly workers: number }
  /** The folder of the compile cache. */
  readonly compiled?: string
  readonly progress?: (part: number) => void
  /** Changes the log before it is checked, for tests of the checks. */
  readonly meddle?: (posts: readonly Written[]) => readonly Written[]
}

export interface FleetReport {
  readonly complaints: readonly string[]
  readonly counts: {
    readonly events: number
    readonly kills: number
    readonly posts: number
    readonly refused: number
    readonly cutOff: number
    /** The number of batches that an endpoint got again after it had them. */
    readonly repeated: number
    readonly deadLetters: number
  }
  /** Of the healthy endpoints, from the publication of a batch's oldest event to its arrival. */
  readonly p99: number
}

const WITNESS = fileURLToPath(new URL('./fleet-endpoints.ts', import.meta.url))
const PORTION = 20
/** A kill falls within this time after a part is published, while its deliveries run or wait. */
const KILLED_WITHIN = 400
const COMPLAINTS_KEPT = 20

export async function fleet(options: FleetOptions): Promise<FleetReport> {
  const { folder, events, isCalm = false } = options
  const key = randomBytes(32).toString('base64')
  const store = { store: options.store?.url ?? `sqlite:${join(folder, 'fleet.db')}`, key }
  const file = join(folder, 'witness.jsonl')
  const witness = fork(WITNESS, [file])
  const crew = new Crew(store, options.store?.workers ?? 1, options.compiled ?? join(folder, 'compiled'))
  try {
    const [{ port }] = (await once(witness, 'message')) as [{ readonly port: number }]
    witness.send(isCalm ? 'calm' : 'wild')
    await crew.begin()
    const { ids } = await crew.ask({ kind: 'register', url: `http://127.0.0.1:${port}` }, 'registered')
    const killed = await published(crew, options)
    await crew.idle()
    await crew.stop()
    const deadLetters = await deadLettersIn(store)
    witness.send('end')
    await once(witness, 'exit')
    const written = readFileSync(file, 'utf8').trim().split('\n')
    const posts = written.map((line) => JSON.parse(line) as Written).toSorted((one, other) => one.at - other.at)
    return judged({
      posts: options.meddle?.(posts) ?? posts,
      deadLetters,
      killed,
      events,
      ids,
      isCalm,
      warmUp: options.warmUp ?? 0,
    })
  } finally {
    crew.kill()
    witness.kill('SIGKILL')
  }
}

/**
 * Publishes one part more than there are kills. Each kill interrupts the deliveries of one part and the publication
 * of the next.
 */
async function published(crew: Crew, options: FleetOptions): Promise<readonly string[]> {
  const { events, kills, seed, pause = 0 } = options
  const by = chance(seed)
  const killed: string[] = []
  let killing: Promise<unknown> = Promise.resolve()
  for (let part = 0; part <= kills; part++) {
    const [first = 0, last = 0] = [part, part + 1].map((at) => Math.floor((events * at) / (kills + 1)))
    for (let from = first; from < last; from += PORTION) {
      await crew.publish(from, Math.min(from + PORTION, last))
      if (pause > 0) await setTimeout(pause)
    }
    options.progress?.((part + 1) / (kills + 1))
    await killing
    if (part === kills) break
    // Waits until the runs of the last killed worker are claimed again, because a run that is killed four times
    // becomes a dead letter.
    if (part > 0) await setTimeout(LEASE)
    const after = by.unit() * KILLED_WITHIN
    killing = setTimeout(after).then(async () => killed.push(await crew.killOne(by)))
  }
  return killed
}

interface DeadLetterOf extends Letter {
  readonly key: string
}

async function deadLettersIn(store: FleetStore): Promise<readonly DeadLetterOf[]> {
  const app = fleetApp(store)
  const deadLetters: DeadLetterOf[] = []
  try {
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: Awaited<ReturnType<typeof app.admin.deadLetters.list>> = await app.admin.deadLetters.list(
        {},
        cursor,
        100,
      )
      for (const one of page.items)
        if (one.kind === 'run') deadLetters.push({ key: one.key, events: one.events, reason: reasonOf(one) })
      cursor = page.next
    }
  } finally {
    await app.stop()
  }
  return deadLetters
}

/** Returns why the batch is dead, and its last error. */
function reasonOf({
  reason,
  attempts,
}: {
  readonly reason: string
  readonly attempts: readonly { error: string }[]
}): string {
  return `${reason}: ${attempts.at(-1)?.error ?? ''}`
}

interface Judged {
  readonly posts: readonly Written[]
  readonly deadLetters: readonly DeadLetterOf[]
  readonly killed: readonly string[]
  readonly events: number
  /** The ids of the endpoints, in the order of the fleet. */
  readonly ids: readonly string[]
  readonly isCalm: boolean
  readonly warmUp: number
}

function judged({ posts, deadLetters, killed, events, ids, isCalm, warmUp }: Judged): FleetReport {
  const isHealthy = (endpoint: number): boolean => isCalm || FLEET[endpoint]?.behaviour === 'healthy'
  const complaints = FLEET.flatMap((member) =>
    complaintsOf({
      endpoint: member.at,
      wanted: wantedBy(member, events),
      posts: posts.filter(({ endpoint }) => endpoint === member.at),
      deadLetters: deadLetters.filter(({ key }) => key === ids[member.at]),
      killed,
      isHealthy: isHealthy(member.at),
      maxEvents: MAX_EVENTS,
      saying: member.behaviour === 'chokes' ? /returned 500/ : /\w{5}/,
    }),
  )
  const begin = plannedOf(warmUp).id
  const had = posts.filter(({ end }) => end !== 'refused').map(({ batch }) => batch)
  return {
    complaints: complaints.slice(0, COMPLAINTS_KEPT),
    counts: {
      events,
      kills: killed.length,
      posts: posts.length,
      refused: posts.filter(({ end }) => end === 'refused').length,
      cutOff: posts.filter(({ end }) => end === 'cut-off').length,
      repeated: had.length - new Set(had).size,
      deadLetters: deadLetters.length,
    },
    p99: p99(
      posts
        .filter(({ endpoint, events: [first = ''] }) => isHealthy(endpoint) && first >= begin)
        .map(({ latency }) => latency),
    ),
  }
}
