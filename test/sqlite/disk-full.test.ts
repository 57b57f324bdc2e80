// R25: on a full disk the store reports this and acknowledges nothing. It keeps what it has, and continues once there is room.
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { createClaimRequest, done, createRetentionPolicy } from '../conformance/builders.ts'
import type { EventToStore, Store } from '../../src/store/contract/index.ts'
import { connect, event, freshFile, freshFolder, open, send } from './scratch.ts'

const BIG = 10_000

function big(name: string): EventToStore {
  return event(name, { body: Buffer.alloc(BIG, name) })
}

/** The names of the events that were acknowledged before the first rejection. */
async function fill(store: Store, prefix: string): Promise<readonly string[]> {
  for (const stored: string[] = []; ;) {
    const name = `${prefix}${stored.length}`
    try {
      await send(store, big(name))
      stored.push(name)
    } catch (error) {
      expect(error).toMatchObject({ code: 'STORE_FULL' })
      return stored
    }
  }
}

async function expectKept(store: Store, names: readonly string[]): Promise<void> {
  const { bodies } = await store.readBodies({ events: names })
  for (const [at, name] of names.entries()) expect(bodies[at]).toEqual(new Uint8Array(Buffer.alloc(BIG, name)))
}

/** Claims and settles everything. */
async function runAll(store: Store, from = 1): Promise<number> {
  const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  const call = { process: 'p', routes: 1, budget: 0 }
  const { claimed } = await store.settleAndClaim({
    ...call,
    request: from,
    settle: [],
    claim: [createClaimRequest({ maxRuns: 1_000 })],
  })
  const settle = claimed.map(({ lane, token }) => ({ ...end, lane, token }))
  const { settled } = await store.settleAndClaim({ ...call, request: from + 1, settle, claim: [] })
  return settled.filter((answer) => answer === 'ok').length
}

describe('maxBytes', () => {
  it('ends appends, and no acknowledged event is lost', async () => {
    const file = freshFile()
    const store = await open(file, { maxBytes: 1_000_000 })
    const kept = await fill(store, 'a')
    expect(kept.length).toBeGreaterThan(50)
    await expect(send(store, big('one more'))).rejects.toMatchObject({
      code: 'STORE_FULL',
      status: 507,
      fix: expect.stringContaining('Raise maxBytes') as string,
    })
    await expectKept(store, kept)
    await store.close()
    const again = await open(file)
    await expectKept(again, kept)
    expect((await again.get({ kind: 'events', id: 'one more' })).item).toBeUndefined()
    expect(connect(file).prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
  })

  it('rejects the call that is too big, and not others of the same moment', async () => {
    const file = freshFile()
    const store = await open(file, { maxBytes: 1_000_000 })
    await fill(store, 'a')
    const huge = event('huge', { body: Buffer.alloc(500_000) })
    const results = await Promise.allSettled([
      send(store, event('small 1')),
      send(store, huge),
      send(store, event('small 2')),
    ])
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await store.get({ kind: 'events', id: 'small 2' })).item?.id).toBe('small 2')
  })

  it('when finished events have been deleted, appends continue without help', async () => {
    const store = await open(freshFile(), { maxBytes: 1_000_000 })
    for (let n = 0; n < 30; n++) await send(store, big(`first ${n}`))
    expect(await runAll(store)).toBe(30)
    const kept = await fill(store, 'a')
    const { counts: did } = await store.maintain({
      budget: 10_000,
      policy: createRetentionPolicy({ events: { '': 0 }, runs: { '': 0 } }),
    })
    expect(did.events).toBe(30)
    const more = await fill(store, 'b')
    expect(more.length).toBeGreaterThan(20)
    await expectKept(store, [...kept, ...more])
  })

  it('a full store still runs its events, which is how it gets room again', async () => {
    const store = await open(freshFile(), { maxBytes: 1_000_000 })
    const kept = await fill(store, 'a')
    expect(await runAll(store)).toBe(kept.length)
  })
})

// A private file system that disappears with the process. Needs root, or user namespaces.
const mount = 'mount -t tmpfs -o size=16m tmpfs "$0" && cd "$0" && exec "$@"'
const unshare = ['unshare', process.getuid?.() === 0 ? '-m' : '-Urm'].join(' ')
const CHILD = fileURLToPath(new URL('./disk-full-child.ts', import.meta.url))
const SMALL_DISK_CHILD = fileURLToPath(new URL('./small-disk-child.ts', import.meta.url))
const DISK_BYTES = 16 * 1_048_576

function onSmallDisk(folder: string, ...command: readonly string[]): { status: number | null; stdout: string } {
  mkdirSync(folder, { recursive: true })
  const script = `exec ${unshare} sh -c '${mount}' "$0" "$@"`
  return spawnSync('sh', ['-c', script, folder, ...command], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 60_000,
  })
}

const possible =
  process.platform === 'linux' && onSmallDisk(join(tmpdir(), `sluice-disk-${process.pid}`), 'true').status === 0
const why = possible ? '' : ' (SKIPPED: this system lets us mount no file system of our own)'

describe('a full disk', () => {
  it.skipIf(!possible)(`20 times: STORE_FULL, nothing lost, and the store continues when there is space${why}`, () => {
    const { stdout } = onSmallDisk(freshFolder(), process.execPath, CHILD, '.')
    const report = JSON.parse(stdout) as Record<string, unknown>
    expect(report).toMatchObject({ lost: 0, there: 0, offences: [], codes: ['STORE_FULL'], integrity: 'ok' })
    expect(report['stored']).toBeGreaterThan(20 * 4)
    expect(report['failed']).toBeGreaterThan(20)
    expect(report['ran']).toBe(report['stored'])
    expect(['opened', 'STORE_FULL']).toContain(report['opened'])
  })

  it.skipIf(!possible)(`is full of events, not of the log, and takes more as soon as some of it is free${why}`, () => {
    const { stdout } = onSmallDisk(freshFolder(), process.execPath, SMALL_DISK_CHILD, '.')
    const report = JSON.parse(stdout) as Record<string, unknown>
    expect(report).toMatchObject({ filled: { code: 'STORE_FULL' }, again: { stored: 200, code: '' }, isComplete: true })
    expect(report['bytes']).toBeGreaterThan(DISK_BYTES / 2)
  })
})
