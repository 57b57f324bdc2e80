// Shared by the tests of limits: a flow that calls under a limit, a network with prepared responses, and the times of the calls.
import { onTestFinished } from 'vitest'
import type { Limit, LimitOptions, Run, Sluice } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { ping, play, userOf, type Declare } from './scene.ts'

export type Call = (limit: Limit, run: Run, app: Sluice) => unknown

/** A flow whose handler calls under the limit `api`. */
export function calling(options: LimitOptions, call: Call, timeout: '5m' | '3h' = '5m'): Declare {
  return (app) => {
    const limit = app.limit('api', options)
    app.flow('f', { on: 'ping', key: userOf, timeout, run: async (run) => void (await call(limit, run, app)) })
  }
}

/** A `fetch` that returns these responses in order, the last one forever, and records when it was called. */
export function network(now: () => number, ...answers: readonly (() => Response)[]): number[] {
  const real = globalThis.fetch
  const calls: number[] = []
  const left = [...answers]
  globalThis.fetch = () => {
    calls.push(now())
    return Promise.resolve(((left.length > 1 ? left.shift() : left[0]) ?? ok)())
  }
  onTestFinished(() => void (globalThis.fetch = real))
  return calls
}

export const ok = (): Response => new Response('fine')
export const refused = (): Response => new Response('', { status: 429, headers: { 'retry-after': '30' } })

export function users(n: number): ReturnType<typeof ping>[] {
  return Array.from({ length: n }, (_, at) => ping(`u${at}`))
}

/** The maximum number of calls in any period of this length. */
export function most(calls: readonly number[], per: number): number {
  return Math.max(...calls.map((from) => calls.filter((at) => at >= from && at < from + per).length))
}

/** Calls of all keys under the options, with their times. */
export async function timed(
  store: string,
  options: LimitOptions,
  call?: Call,
): Promise<{ t: TestApp; calls: [string, number][] }> {
  const calls: [string, number][] = []
  const note: Call = (limit, { key }) => limit.run(() => calls.push([key, t.elapsed]))
  const t: TestApp = await play(store, calling(options, call ?? note))
  return { t, calls }
}
