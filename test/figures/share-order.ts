// Measures the order of runs when more lanes are ready than can run: with shares and without (L5, L5g).
import { setTimeout as sleep } from 'node:timers/promises'
import { Sluice, type EventInput } from '../../src/index.ts'

const BATCH = 1_000

export interface ShareLoad {
  /** The address of the store: `memory:` or `sqlite:<file>`. */
  readonly store: string
  /** Ready lanes of the big tenant. */
  readonly lanes: number
  /** Single lanes of other tenants, one after the other. */
  readonly singles: number
  readonly maxConcurrentRuns: number
  /** The concurrency of each tenant; by default all of `maxConcurrentRuns`. */
  readonly concurrency?: number
}

export interface ShareFigure {
  /** How many lanes of the big tenant were ready when the last single lane ran. */
  readonly stillReady: number
  /** Runs of the big tenant that started after a single lane was ready and before it ran: the maximum over all single lanes. */
  readonly most: number
  /** A round: every tenant starts as many runs as it may have at once. */
  readonly round: number
  readonly rounds: number
  /** From the end of `publish` to the run, in ms. */
  readonly slowest: number
}

/** One tenant with many ready lanes, and others with one lane each from time to time. */
export async function shared(load: ShareLoad): Promise<ShareFigure> {
  const { store, lanes, singles, maxConcurrentRuns, concurrency } = load
  const runs = { big: 0 }
  let begun: (() => void) | undefined
  const app = new Sluice({ store, log: false, maxConcurrentRuns: maxConcurrentRuns })
  app.flow('shared', {
    on: 'work',
    key: (event) => event.id,
    share: 'tenant',
    ...(concurrency === undefined ? {} : { concurrency }),
    run: async ({ tenant }) => {
      if (tenant === 'big') runs.big++
      else begun?.()
      await sleep(1)
    },
  })
  await publishAll(app, lanes, () => ({ type: 'work', tenant: 'big' }))
  await app.start()
  while (runs.big < maxConcurrentRuns) await sleep(1)
  const passed: number[] = []
  const took: number[] = []
  for (let n = 0; n < singles; n++) {
    let atItsTurn = 0
    const turn = new Promise<void>((resolve) => {
      begun = () => {
        atItsTurn = runs.big
        resolve()
      }
    })
    await app.publish({ type: 'work', tenant: `small ${n % 2}` })
    const ready = { big: runs.big, at: performance.now() }
    await turn
    // The lane may have run before `publish` returned.
    passed.push(Math.max(0, atItsTurn - ready.big))
    took.push(performance.now() - ready.at)
    await sleep(n % 7)
  }
  const stillReady = lanes - runs.big
  await app.stop()
  const round = concurrency ?? maxConcurrentRuns
  const most = Math.max(...passed)
  return { stillReady, most, round, rounds: Math.ceil(most / round), slowest: Math.round(Math.max(...took)) }
}

export interface OrderLoad {
  readonly store: string
  readonly lanes: number
  readonly seed: number
}

export interface OrderFigure {
  readonly lanes: number
  /** Lanes that were ready before the lane that was served just before them. */
  readonly inversions: number
  /** Lanes that were not served in the order of their publication, which shows that the windows mixed them. */
  readonly mixed: number
}

const LONGEST_WINDOW = 2_000

/** Lanes with windows of all lengths: half of them are ready when the engine starts, the others become ready while it runs. */
export async function served({ store, lanes, seed }: OrderLoad): Promise<OrderFigure> {
  const turns: { readonly due: number; readonly n: number }[] = []
  const app = new Sluice({ store, log: false })
  app.flow('in-order', {
    on: 'work',
    key: (event) => event.id,
    window: (event) => ({ quiet: Number(event.subject) }),
    run: ({ events: [event] }) => {
      const due = (event?.arrived ?? NaN) + Number(event?.subject)
      turns.push({ due, n: Number(event?.text) })
    },
  })
  await publishAll(app, lanes, (n) => ({
    type: 'work',
    subject: String((Math.imul(n + seed, 2_654_435_761) >>> 0) % LONGEST_WINDOW),
    body: String(n),
  }))
  await sleep(LONGEST_WINDOW / 2)
  await app.start()
  while (turns.length < lanes) await sleep(10)
  await app.stop()
  const follows = turns.slice(1).map((turn, at) => ({ turn, before: turns[at] ?? turn }))
  return {
    lanes: new Set(turns.map(({ n }) => n)).size,
    // Of lanes that became ready at the same moment, the one that was published first goes first.
    inversions: follows.filter(
      ({ turn, before }) => turn.due - before.due < 0 || (turn.due === before.due && turn.n < before.n),
    ).length,
    mixed: follows.filter(({ turn, before }) => turn.n < before.n).length,
  }
}

async function publishAll(app: Sluice, lanes: number, event: (n: number) => EventInput): Promise<void> {
  for (let from = 0; from < lanes; from += BATCH) {
    await app.publish(Array.from({ length: Math.min(BATCH, lanes - from) }, (_, n) => event(from + n)))
  }
}
