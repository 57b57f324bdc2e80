// Measures the lists of the admin API with a hundred thousand events and fifty thousand lanes in a file.
import { Sluice } from '../../src/index.ts'

export interface ListLoad {
  readonly store: string
  readonly events: number
  readonly lanes: number
  /** How many events run a thousand at a time, how many of them die, and how many events run alone. */
  readonly runs: number
  readonly dead: number
  readonly alone: number
}

export interface ListFigure {
  readonly path: string
  /** The median of five calls, in ms. */
  readonly ms: number
  readonly items: number
  readonly status: number
}

const AT_ONCE = 2_000
const CALLS = 5

export async function lists(load: ListLoad, paths: readonly string[]): Promise<readonly ListFigure[]> {
  const app = appOf(load)
  try {
    await fill(app, load)
    const { secret } = await app.admin.keys.create({ name: 'reader', role: 'operate' })
    const figures: ListFigure[] = []
    for (const path of paths) figures.push(await figureOf(app, path, secret))
    return figures
  } finally {
    await app.stop()
  }
}

const numberOf = (event: { readonly data: unknown }): number => (event.data as { readonly n: number }).n

const thousands = (event: { readonly data: unknown }): string => `batch-${Math.floor(numberOf(event) / 1_000)}`

function appOf({ store, lanes }: ListLoad): Sluice {
  const app = new Sluice({ store, log: false })
  app.flow('waits', { on: 'late', key: (event) => `user-${numberOf(event) % lanes}`, window: { quiet: '1h' }, run })
  app.flow('does', { on: 'ping', key: thousands, run })
  app.flow('fails', { on: 'bad', key: thousands, retry: [], run: fail })
  app.flow('each', { on: 'single', run })
  app.limit('calls', { rate: 10, per: '1s' })
  return app
}

const run = (): void => {}
const fail = (): never => {
  throw new Error('no luck')
}

/** Runs everything that is due; only the windows stay. */
async function fill(app: Sluice, { events, runs, dead, alone }: ListLoad): Promise<void> {
  const over = Promise.withResolvers<void>()
  const left = { done: runs - dead + alone, dead }
  const ended = (): void => {
    if (left.done <= 0 && left.dead <= 0) over.resolve()
  }
  app.on('run.done', (what) => {
    left.done -= what.events
    ended()
  })
  app.on('run.dead', (what) => {
    left.dead -= what.events
    ended()
  })
  const typeOf = (n: number): string => (n < dead ? 'bad' : n < runs ? 'ping' : n < runs + alone ? 'single' : 'late')
  for (let n = 0; n < events; n += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, events - n) }, (_, at) => n + at)
    const made = some.map((one) => ({ type: typeOf(one), tenant: `tenant-${one % 500}`, data: { n: one, text: TEXT } }))
    await app.publish(made)
  }
  await app.start()
  await over.promise
}

const TEXT = 'a body as long as most are: '.repeat(20)

async function figureOf(app: Sluice, path: string, key: string): Promise<ListFigure> {
  const headers = { authorization: `Bearer ${key}` }
  const times: number[] = []
  let answer = { status: 0, items: 0 }
  for (let n = 0; n < CALLS; n++) {
    const begin = performance.now()
    const response = await app.fetch(new Request(`http://localhost${path}`, { headers }))
    const { items = [] } = (await response.json()) as { readonly items?: readonly unknown[] }
    times.push(performance.now() - begin)
    answer = { status: response.status, items: items.length }
  }
  const [, , median = 0] = times.toSorted((one, other) => one - other)
  return { path, ms: Math.round(median * 10) / 10, ...answer }
}
