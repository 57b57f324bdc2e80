// The deliver bench: signed POSTs of one event each to a sink on this machine. Sluice, a bare loop and BullMQ take turns in one run.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { spreadOf, type Spread } from '../figures.ts'
import { startRedis } from '../redis.ts'
import { judge, type Target, type Deliver } from '../results.ts'
import type { SideName, Work } from './sides.ts'
import type { Took } from './side.ts'
import type { Counted } from './sink.ts'

export interface DeliverPlan {
  readonly rounds: number
  readonly posts: number
  readonly atOnce: number
}

type Progress = (line: string) => void

const TARGETS: Readonly<Record<Exclude<SideName, 'sluice' | 'bare queue'>, Target>> = {
  undici: { kind: 'at least', bound: 0.6, goal: 0.75 },
  bullmq: { kind: 'at least', bound: 1 },
}

export async function measureDeliver(folder: string, plan: DeliverPlan, progress: Progress): Promise<Deliver> {
  const redis = await startRedis(join(folder, 'redis-deliver'), 'everysec')
  if (redis === undefined) progress('there is no redis-server on this machine: BullMQ is left out')
  const names: readonly SideName[] = [
    'sluice',
    'undici',
    'bare queue',
    ...(redis === undefined ? [] : (['bullmq'] as const)),
  ]
  const all = new Map<SideName, Measured[]>(names.map((name) => [name, []]))
  try {
    for (let round = 1; round <= plan.rounds; round++) {
      for (const name of names) {
        const own = join(folder, `deliver-${name.replaceAll(' ', '-')}-${round}`)
        await mkdir(own, { recursive: true })
        const one = await measured(name, { ...plan, folder: own, service: redis?.url ?? '' })
        const text = `${Math.round(one.perSecond).toLocaleString('en')}/s, ${one.cpuMicros.toFixed(0)} µs of CPU each`
        progress(`deliver  round ${round}/${plan.rounds}  ${name}  ${text}`)
        all.get(name)?.push(one)
      }
    }
  } finally {
    await redis?.stop()
  }
  const ratesOf = (name: SideName): readonly number[] => (all.get(name) ?? []).map(({ perSecond }) => perSecond)
  const ratioOf = (one: SideName, other: SideName): Spread =>
    spreadOf(ratesOf(other).map((rate, at) => (ratesOf(one)[at] ?? 0) / rate))
  return {
    kind: 'deliver',
    bench: 'deliver',
    rates: names.map((side) => ({ side, perSecond: spreadOf(ratesOf(side)) })),
    ratios: names
      .filter((name) => name !== 'sluice' && name !== 'bare queue')
      .map((side) => {
        const spread = ratioOf('sluice', side)
        return { side, spread, target: TARGETS[side], verdict: judge(spread.median, TARGETS[side]) }
      }),
    floor: { side: 'bare queue', of: 'undici', spread: ratioOf('bare queue', 'undici') },
    cpu: names.map((side) => ({
      side,
      micros: spreadOf((all.get(side) ?? []).map(({ cpuMicros }) => cpuMicros)),
    })),
  }
}

interface Measured {
  readonly perSecond: number
  /** The CPU time of one POST. */
  readonly cpuMicros: number
}

/** Starts a side and a new sink for it, and warms both up. */
async function measured(name: SideName, work: Omit<Work, 'url'>): Promise<Measured> {
  const sink = forked('./sink.ts', [])
  try {
    const { port } = await heard<{ readonly port: number }>(sink, 'the sink')
    const side = forked('./side.ts', [name, JSON.stringify({ ...work, url: `http://127.0.0.1:${port}/` })])
    try {
      await heard(side, name)
      side.send('run')
      const { millis, cpuMicros } = await heard<Took>(side, name)
      sink.send('count')
      const counted = await heard<Counted>(sink, 'the sink')
      if (counted.posts < work.posts || counted.wrong > 0 || counted.checked === 0)
        throw new Error(`Of ${work.posts} POSTs of ${name} the sink had ${JSON.stringify(counted)}.`)
      await exited(side)
      return { perSecond: (work.posts / millis) * 1_000, cpuMicros: cpuMicros / work.posts }
    } finally {
      side.kill('SIGKILL')
    }
  } finally {
    sink.kill('SIGKILL')
  }
}

function forked(file: string, args: readonly string[]): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)), [...args])
}

async function heard<T>(child: ChildProcess, who: string): Promise<T> {
  const end = once(child, 'exit').then(() => {
    throw new Error(`${who} ended without a word.`)
  })
  end.catch(() => {})
  const [message] = (await Promise.race([once(child, 'message'), end])) as [T]
  return message
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
