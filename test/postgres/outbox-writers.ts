// Twelve writers publish in transactions of random lengths, some of which roll back, while the apps of two processes route.
// Records outside the engine what was committed, routed and run, and when.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Sluice } from '../../src/index.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'

export interface WritersPlan {
  readonly url: string
  readonly schema: string
  readonly writers: number
  /** The minimum number of committed events. */
  readonly events: number
  readonly random: () => number
  readonly progress?: (part: number) => void
}

export interface WritersFigure {
  readonly committed: number
  readonly rolledBack: number
  readonly missing: number
  readonly twice: number
  /** Events of rolled-back transactions that ran. */
  readonly undone: number
  /** Events of one transaction that ran in another order than they were published. */
  readonly disordered: number
  /** Milliseconds from the reply to COMMIT until the event was routed. */
  readonly routedP50: number
  readonly routedP99: number
  readonly routedMost: number
}

interface Noted {
  readonly tx: string
  readonly n: number
}

const APPS = 2
const ROLLED_BACK = 0.1
const MOST_EVENTS = 20
const LONGEST = 150
const KEYS = 50

export async function outboxWriters(plan: WritersPlan): Promise<WritersFigure> {
  const { url, schema, writers, random } = plan
  const committedAt = new Map<string, number>()
  const undoneIds = new Set<string>()
  const routedAt = new Map<string, number>()
  const ran = new Map<string, number>()
  const lastOf = new Map<string, number>()
  let disordered = 0
  let wake: (() => void) | undefined
  const ends: (() => Promise<unknown>)[] = []
  for (let n = 0; n < APPS; n++) {
    const store = await openPostgresStore({ url, schema, acceptLoss: true })
    const app = new Sluice({ store, log: false })
    app.flow('write-down', {
      on: 'made',
      key: (event) => event.subject,
      run: (run) => {
        for (const event of run.events) {
          ran.set(event.id, (ran.get(event.id) ?? 0) + 1)
          const { tx, n: place } = event.data as Noted
          const lane = `${run.key}/${tx}`
          if (place < (lastOf.get(lane) ?? -1)) disordered++
          lastOf.set(lane, place)
        }
        wake?.()
      },
    })
    app.on('event.received', ({ event }) => void (routedAt.has(event) || routedAt.set(event, performance.now())))
    await app.start()
    ends.push(async () => {
      await app.stop()
      await store.close()
    })
  }
  let rolledBack = 0
  const write = async (writer: number): Promise<void> => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    for (let turn = 0; committedAt.size < plan.events; turn++) {
      const tx = `${writer}/${turn}`
      const key = `key-${Math.floor(random() * KEYS)}`
      const ids: string[] = []
      await client.query('begin')
      const count = 1 + Math.floor(random() * MOST_EVENTS)
      for (let n = 0; n < count; n++) {
        const data = JSON.stringify({ tx, n } satisfies Noted)
        const { rows } = await client.query<{ id: string }>(
          `select "${schema}".publish('made', $1, subject => $2) as id`,
          [data, key],
        )
        ids.push(rows[0]?.id ?? '')
      }
      // Most transactions end at once; some stay open while others come and go.
      if (random() < 0.2) await sleep(random() * LONGEST)
      const isUndone = random() < ROLLED_BACK
      await client.query(isUndone ? 'rollback' : 'commit')
      const now = performance.now()
      if (isUndone) rolledBack += ids.length
      for (const id of ids)
        if (isUndone) undoneIds.add(id)
        else committedAt.set(id, now)
      plan.progress?.(Math.min(1, committedAt.size / plan.events))
    }
    await client.end()
  }
  await Promise.all(Array.from({ length: writers }, (_, n) => write(n)))
  await allRan(
    () => [...committedAt.keys()].every((id) => ran.has(id)),
    (next) => (wake = next),
  )
  for (const end of ends) await end()
  const late = [...committedAt]
    .map(([id, at]) => (routedAt.get(id) ?? Infinity) - at)
    .toSorted((one, other) => one - other)
  const at = (share: number): number =>
    Math.round(late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? 0)
  return {
    committed: committedAt.size,
    rolledBack,
    missing: [...committedAt.keys()].filter((id) => !ran.has(id)).length,
    twice: [...ran.values()].filter((times) => times > 1).length,
    undone: [...undoneIds].filter((id) => ran.has(id)).length,
    disordered,
    routedP50: at(0.5),
    routedP99: at(0.99),
    routedMost: at(1),
  }
}

const LONGEST_WAIT = 60_000

/** Waits until everything ran, or nothing has run for a long time. */
async function allRan(isDone: () => boolean, onRun: (next: () => void) => void): Promise<void> {
  for (let isStill = false; !isDone() && !isStill;) {
    const ranOne = new Promise<boolean>((resolve) => onRun(() => resolve(false)))
    isStill = await Promise.race([ranOne, sleep(LONGEST_WAIT, true, { ref: false })])
  }
}
