// Shared by the tests of receiving: an app on a store that the test can read, and requests as GitHub and Notion sign them.
import { createHmac } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { openStore, Sluice, type SluiceOptions, type Store } from '../../src/index.ts'
import type { EventRecord } from '../../src/store/contract/index.ts'
import { github } from '../../src/sources/github.ts'
import { VirtualClock } from '../../src/testing/index.ts'

export const SECRET = 'it is told to nobody'
/** 32 bytes. */
export const KEY = Buffer.alloc(32, 'key of the test').toString('base64')
export const NOW = Date.UTC(2026, 0, 15)
export const AT_GITHUB = 'http://hooks.test/in/github'

export interface Scene {
  readonly app: Sluice
  readonly store: Store
  readonly clock: VirtualClock
}

type Options = Partial<Omit<SluiceOptions, 'clock'>>

/** The app is not started: it receives, and runs nothing. It is stopped at the end of the test. */
export async function opened(declare: (app: Sluice) => unknown, options: Options = {}): Promise<Scene> {
  const clock = new VirtualClock(NOW)
  const given = options.store
  const store = typeof given === 'object' ? given : await openStore(given ?? 'memory:', { clock })
  const app = new Sluice({ log: false, ...options, store, clock })
  declare(app)
  onTestFinished(async () => {
    await app.stop()
    if (typeof given !== 'object') await store.close()
  })
  return { app, store, clock }
}

export function withGithub(app: Sluice): Sluice {
  return app.source('github', github({ secret: SECRET }))
}

export interface Hook {
  readonly url?: string
  readonly secret?: string
  readonly delivery?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The headers of a webhook as GitHub sends it. */
export function githubHeaders(body: string | Uint8Array, { secret = SECRET, delivery = 'd1', headers }: Hook = {}) {
  return {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': delivery,
    'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    ...headers,
  }
}

export function githubHook(body: string | Uint8Array, hook: Hook = {}): Request {
  return new Request(hook.url ?? AT_GITHUB, { method: 'POST', headers: githubHeaders(body, hook), body: bytesOf(body) })
}

/** A copy, because a request does not accept a view of one part of a larger buffer as a body. */
export function bytesOf(body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(body))
}

export interface ProblemBody {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
}

export async function problemOf(response: Response): Promise<ProblemBody> {
  return (await response.json()) as ProblemBody
}

/** All events in the store, with bodies and receipts, oldest first. */
export async function eventsIn(store: Store): Promise<readonly EventRecord[]> {
  const { items } = await store.find({ kind: 'events', filter: {}, cursor: '', n: 1_000 })
  const whole = await Promise.all(items.map(async ({ id }) => (await store.get({ kind: 'events', id })).item))
  return whole.filter((item) => item !== undefined).toReversed()
}

export function textOf(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString()
}
