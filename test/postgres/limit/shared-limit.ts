// One limit of 3 a second over several processes on one PostgreSQL, each of which stops now and then. Compares what arrives at
// the other side with what an exact limiter could have sent.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Sluice } from '../../../src/index.ts'
import { rounded } from '../../figures/folder.ts'
import { exactCalls, gaps, mostInAWindow, PER, type LimitFigure, type LimitLoad } from '../../figures/limit-load.ts'
import { receiver, type Receiver } from '../../figures/receiver.ts'
import type { Sent } from './child.ts'

export interface SharedLoad extends Pick<LimitLoad, 'demand' | 'ms' | 'stall'> {
  readonly url: string
  readonly processes: number
  /** When a process's event loop is blocked, and when a process is stopped, from the beginning of the load; they alternate. */
  readonly stalls: readonly number[]
  readonly stops: readonly number[]
}

export interface SharedFigure extends Pick<
  LimitFigure,
  | 'made'
  | 'mostInASecond'
  | 'closest'
  | 'closestHanded'
  | 'receiverLag'
  | 'broken'
  | 'allowed'
  | 'share'
  | 'failed'
  | 'putOff'
> {
  /** The number of calls that each process made. */
  readonly byProcess: readonly number[]
}

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))
const TOP_UP_EVERY = 250

export async function sharedLimit(load: SharedLoad): Promise<SharedFigure> {
  const other = await receiver()
  const children = Array.from({ length: load.processes }, () => fork(CHILD, [load.url, other.url], { execArgv: [] }))
  try {
    await Promise.all(children.map(async (child) => once(child, 'message')))
    const asked = await demanded(load, other, children)
    const made = await other.howMany()
    const sent = await Promise.all(children.map(async (child) => ended(child)))
    const { arrivals, lag } = await other.what()
    const handed = sent.flatMap((one) => one.handed).toSorted((one, next) => one - next)
    const allowed = exactCalls(asked, [], load.ms)
    return {
      made,
      mostInASecond: mostInAWindow(arrivals),
      closest: rounded(Math.min(...gaps(arrivals))),
      closestHanded: rounded(Math.min(...gaps(handed))),
      receiverLag: rounded(lag),
      broken: gaps(arrivals).filter((gap) => gap < PER).length,
      allowed,
      share: rounded(made / allowed, 3),
      failed: sent.reduce((sum, one) => sum + one.failed, 0),
      putOff: sent.reduce((sum, one) => sum + one.putOff, 0),
      byProcess: sent.map((one) => one.handed.length),
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    other.stop()
  }
}

/** When each run was requested. Ends with the load. */
async function demanded(
  load: SharedLoad,
  other: Receiver,
  children: readonly ChildProcess[],
): Promise<readonly number[]> {
  const { demand, ms, url } = load
  const app = new Sluice({ store: url, log: false }).flow('call', { on: 'call', run: () => {} })
  const asked: number[] = []
  await app.publish([])
  const began = performance.now()
  const now = (): number => performance.now() - began
  const inTurn = (times: readonly number[], still: (child: ChildProcess) => Promise<void>): readonly Promise<void>[] =>
    times.map(async (at, n) => {
      const child = children[n % children.length]
      await setTimeout(at)
      if (child !== undefined) await still(child)
    })
  const standing = [
    ...inTurn(load.stalls, async (child) => void child.send(load.stall)),
    ...inTurn(load.stops, (child) => stopped(child, load.stall)),
  ]
  const ask = async (runs: number): Promise<void> => {
    if (runs <= 0) return
    const at = now()
    for (let n = 0; n < runs; n++) asked.push(at)
    await app.publish(Array.from({ length: runs }, () => ({ type: 'call' })))
  }
  for (let next = 0; now() < ms; await setTimeout(Math.max(0, Math.min(next, ms) - now()))) {
    if ('waiting' in demand) await ask(demand.waiting - (asked.length - (await other.howMany())))
    else await ask(demand.burst)
    next += 'waiting' in demand ? TOP_UP_EVERY : demand.every
  }
  await Promise.all(standing)
  await app.stop()
  return asked
}

async function stopped(child: ChildProcess, ms: number): Promise<void> {
  child.kill('SIGSTOP')
  await setTimeout(ms)
  child.kill('SIGCONT')
}

async function ended(child: ChildProcess): Promise<Sent> {
  const said = once(child, 'message') as Promise<[Sent]>
  child.send('stop')
  return (await said)[0]
}
