// Measures a visit to the dashboard of an app under load: how long each interaction takes, and how much memory the page uses.
import { fork, type ChildProcess } from 'node:child_process'
import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { CDPSession } from 'playwright-core'
import { openBrowser } from '../../browser.ts'
import type { Chance } from '../../sqlite/kill-load.ts'
import { rounded } from '../../figures/folder.ts'
import type { Message, StoredLoad } from './app.ts'
import { measure, prepare, tour } from './visit.ts'

export interface VisitOptions {
  readonly store: string
  readonly load: StoredLoad
  readonly minutes: number
  readonly chance: Chance
  readonly progress: (text: string) => void
}

interface StepFigure {
  readonly times: number
  readonly medianMs: number
  readonly p95Ms: number
  readonly longestMs: number
}

export interface VisitFigures {
  readonly interactions: number
  readonly medianMs: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly longestMs: number
  /** The share of interactions that took 100 ms or more. */
  readonly slowShare: number
  /** The largest size of the JavaScript heap that a sample found, without a forced collection. */
  readonly heapMb: number
  /** The size after a forced collection, after the first round and at the end. */
  readonly heapKeptMb: readonly [begin: number, end: number]
  readonly publishedPerSecond: number
  /** What the page logged as errors. */
  readonly errors: readonly string[]
  readonly machineLoad: readonly number[]
  readonly steps: Readonly<Record<string, StepFigure>>
}

export const MOST_MS = 100
const APP = fileURLToPath(new URL('./app.ts', import.meta.url))
const SAMPLE_EVERY = 1_000
/** A person looks at an answer before the next step. */
const LOOK_MS = 300
const MB = 1_048_576

export async function visit({ store, load, minutes, chance, progress }: VisitOptions): Promise<VisitFigures> {
  const app = await startApp(store, load, progress)
  const browser = await openBrowser()
  let sampler: NodeJS.Timeout | undefined
  try {
    const page = await browser.context.newPage()
    const errors: string[] = []
    page.on('pageerror', ({ message }) => errors.push(message))
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    await page.setViewportSize({ width: 1_440, height: 900 })
    // Without a graphics card, each frame of the gliding axis takes a core from the app.
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await prepare(page)
    const tools = await browser.context.newCDPSession(page)
    await tools.send('Performance.enable')
    await page.goto(app.url)
    await page.locator('.verdict .say').waitFor()
    let heap = 0
    const sample = async (): Promise<void> => {
      // The page may be closed meanwhile.
      heap = Math.max(heap, await heapOf(tools).catch(() => 0))
    }
    sampler = setInterval(() => void sample(), SAMPLE_EVERY)
    const times = new Map<string, number[]>()
    const machineLoad: number[] = []
    const startedAt = performance.now()
    const publishedBefore = app.published()
    let keptAtFirst = 0
    for (let round = 1; round === 1 || performance.now() - startedAt < minutes * 60_000; round++) {
      for (const step of tour(chance, load.lanes)) {
        const took = await measure(page, step)
        times.set(step.name, [...(times.get(step.name) ?? []), took])
        await page.waitForTimeout(LOOK_MS)
      }
      if (round === 1) keptAtFirst = await keptHeap(tools)
      machineLoad.push(rounded(loadavg()[0] ?? 0))
      progress(`round ${round}: ${describe([...times.values()].flat())}, heap at most ${rounded(heap)} MB`)
    }
    const seconds = (performance.now() - startedAt) / 1_000
    return {
      ...figuresOf(times),
      heapMb: rounded(heap),
      heapKeptMb: [rounded(keptAtFirst), rounded(await keptHeap(tools))],
      publishedPerSecond: Math.round((app.published() - publishedBefore) / seconds),
      errors: errors.slice(0, 10),
      machineLoad: [Math.min(...machineLoad), Math.max(...machineLoad)],
    }
  } finally {
    clearInterval(sampler)
    await browser.close()
    await app.stop()
  }
}

interface RunningApp {
  readonly url: string
  readonly published: () => number
  stop(): Promise<void>
}

function startApp(store: string, load: StoredLoad, progress: (text: string) => void): Promise<RunningApp> {
  const child: ChildProcess = fork(APP, [store, JSON.stringify(load)], { execArgv: ['--no-warnings'] })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  let published = 0
  let shown = 0
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`The app ended with the code ${code}.`)))
    child.on('message', (message: Message) => {
      if ('published' in message) published = message.published
      if ('filled' in message && message.filled >= shown + 0.25) {
        shown = message.filled
        progress(`${Math.round(shown * 100)} % of the events are stored`)
      }
      if (!('url' in message)) return
      resolve({ url: message.url, published: () => published, stop: () => kill(child, ended) })
    })
  })
}

async function kill(child: ChildProcess, ended: Promise<void>): Promise<void> {
  child.kill('SIGKILL')
  await ended
}

async function heapOf(tools: CDPSession): Promise<number> {
  const { metrics } = await tools.send('Performance.getMetrics')
  return (metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? 0) / MB
}

async function keptHeap(tools: CDPSession): Promise<number> {
  await tools.send('HeapProfiler.collectGarbage')
  return heapOf(tools)
}

type StepFigures = Pick<
  VisitFigures,
  'interactions' | 'medianMs' | 'p95Ms' | 'p99Ms' | 'longestMs' | 'slowShare' | 'steps'
>

function figuresOf(times: ReadonlyMap<string, readonly number[]>): StepFigures {
  const all = [...times.values()].flat()
  return {
    interactions: all.length,
    medianMs: percentile(all, 0.5),
    p95Ms: percentile(all, 0.95),
    p99Ms: percentile(all, 0.99),
    longestMs: percentile(all, 1),
    slowShare: rounded(all.filter((one) => one >= MOST_MS).length / all.length, 4),
    steps: Object.fromEntries(
      Array.from(times, ([name, some]) => [
        name,
        {
          times: some.length,
          medianMs: percentile(some, 0.5),
          p95Ms: percentile(some, 0.95),
          longestMs: percentile(some, 1),
        },
      ]),
    ),
  }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return rounded(sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0, 1)
}

function describe(times: readonly number[]): string {
  return `${times.length} interactions, median ${percentile(times, 0.5)} ms, p95 ${percentile(times, 0.95)} ms`
}
