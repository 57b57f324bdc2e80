// The metrics: every value under its name, without any key, tenant or id, and with a bounded number of lines.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Metrics, type MetricsDependencies } from '../../src/observe/metrics/metrics.ts'
import { createClaimRequest, createEventToStore } from '../conformance/builders.ts'
import type { Store } from '../../src/store/contract/index.ts'
import { emitEnd, scene, STORES, type Counting, type Scene } from './stats-scene.ts'

interface Rig extends Scene {
  readonly p: Counting
  readonly metrics: Metrics
  /** The lines that begin with this. */
  lines(start: string): Promise<readonly string[]>
}

async function rig(address: string, words: Partial<MetricsDependencies> = {}): Promise<Rig> {
  const s = await scene(address)
  const p = s.process()
  const { clock } = s
  const metrics = new Metrics({ events: p.events, clock, now: () => clock.now(), store: async () => s.store, ...words })
  const lines = async (start: string): Promise<readonly string[]> =>
    (await metrics.render()).split('\n').filter((line) => line.startsWith(start))
  return { ...s, p, metrics, lines }
}

const LEASE = { lane: 'l', flow: 'bill', tries: 0, lapses: 0, rank: 0, isDeadLetter: false } as const
const RUN = { flow: 'bill', key: 'secret-key', tenant: 'acme', run: 'run-id', attempt: 1, events: 1 } as const

const refusals = (): { source: string; reason: string; count: number }[] => [
  { source: 'shop', reason: 'SIGNATURE_WRONG', count: 7 },
]
const gone = (): Promise<Store> => Promise.reject(new Error('gone'))

describe.each(STORES)('metrics on %s', (address) => {
  it('count what is received, rejected, skipped and refused', async () => {
    const r = await rig(address, { countRefused: refusals })
    const event = { event: 'e', source: 'shop', type: 'paid' }
    r.p.receive('shop', 'paid', ['bill'])
    r.p.receive('shop', 'paid', ['bill'])
    r.p.events.emit('event.duplicate', { ...event, of: 'x' })
    r.p.events.emit('event.conflict', { ...event, of: 'x' })
    r.p.events.emit('event.skipped', { ...event, flow: 'bill', text: '' })
    r.p.events.emit('event.unrouted', { ...event, flow: 'bill', reason: 'key-failed', error: 'x' })
    r.p.events.emit('event.refused', { ...event, field: 'time', fix: 'x' })
    expect(await r.lines('sluice_events_')).toEqual([
      'sluice_events_received_total{source="shop"} 2',
      'sluice_events_duplicate_total{source="shop"} 1',
      'sluice_events_conflict_total{source="shop"} 1',
      'sluice_events_refused_total{source="shop",reason="time"} 1',
      'sluice_events_skipped_total{flow="bill"} 1',
      'sluice_events_unrouted_total{flow="bill",reason="key-failed"} 1',
    ])
    const refused = 'sluice_requests_refused_total{source="shop",reason="SIGNATURE_WRONG"} 7'
    expect(await r.lines('sluice_requests')).toEqual([refused])
    // The values are computed anew each time, not added up.
    expect(await r.lines('sluice_requests')).toEqual([refused])
  })

  it('count attempts by ending, events of a run, dead letters, and the time from arrival to done', async () => {
    const r = await rig(address)
    r.p.end('bill', { kind: 'done' }, { ago: [20, 4_000, 400_000] })
    r.p.end('bill', { kind: 'retry', after: 1 })
    r.p.end('bill', { kind: 'dead', reason: 'x', block: false })
    const outcome = { kind: 'partial', retry: [], dead: ['e1'], after: 0, reason: 'x', block: false } as const
    r.p.end('bill', outcome, { ago: [0, 0] })
    r.p.events.emit('run.lost', { ...RUN, ms: 1, why: 'x' })
    expect(await r.lines('sluice_attempts')).toEqual([
      'sluice_attempts_total{flow="bill",ending="done"} 1',
      'sluice_attempts_total{flow="bill",ending="retry"} 1',
      'sluice_attempts_total{flow="bill",ending="dead"} 1',
      'sluice_attempts_total{flow="bill",ending="partial"} 1',
      'sluice_attempts_total{flow="bill",ending="lost"} 1',
    ])
    expect(await r.lines('sluice_dead_letters_total')).toEqual(['sluice_dead_letters_total{flow="bill"} 2'])
    expect(await r.lines('sluice_run_events_sum')).toEqual(['sluice_run_events_sum{flow="bill"} 6'])
    expect(await r.lines('sluice_run_events_count')).toEqual(['sluice_run_events_count{flow="bill"} 3'])
    expect(await r.lines('sluice_arrival_to_done_seconds_count')).toEqual([
      'sluice_arrival_to_done_seconds_count{flow="bill"} 4',
    ])
    const buckets = await r.lines('sluice_arrival_to_done_seconds_bucket')
    expect(buckets[0]).toBe('sluice_arrival_to_done_seconds_bucket{flow="bill",le="0.01"} 1')
    expect(buckets).toContain('sluice_arrival_to_done_seconds_bucket{flow="bill",le="5"} 3')
    expect(buckets.at(-1)).toBe('sluice_arrival_to_done_seconds_bucket{flow="bill",le="+Inf"} 4')
  })

  it('add up what handlers counted, in runs that are done or dropped', async () => {
    const r = await rig(address)
    r.p.events.emit('run.done', { ...RUN, ms: 1, counts: { sent: 2, late: 1 } })
    r.p.events.emit('run.dropped', { ...RUN, ms: 1, reason: 'x', counts: { sent: 3 } })
    expect(await r.lines('sluice_counts')).toEqual([
      'sluice_counts_total{flow="bill",name="sent"} 5',
      'sluice_counts_total{flow="bill",name="late"} 1',
    ])
  })

  it('count a rerun if events arrived while their lane ran, and none if they arrived later', async () => {
    const r = await rig(address)
    const began = async (lane: string, arrived: number): Promise<void> => {
      const { emitWithFacts } = await import('../../src/observe/stats/run-facts.ts')
      const lease = { ...LEASE, lane, events: [{ id: 'e', source: 's', type: 't', arrived }] }
      emitWithFacts(r.p.events.emit, 'run.started', { ...RUN }, { lease, outcome: undefined })
    }
    const ended = (lane: string): void =>
      emitEnd(r.p.events, { lease: { ...LEASE, lane, events: [] }, outcome: { kind: 'done' } })
    const before = r.clock.now()
    await r.advance(1_000)
    ended('one')
    ended('two')
    await began('one', before)
    await began('two', r.clock.now())
    await began('three', before)
    expect(await r.lines('sluice_reruns')).toEqual(['sluice_reruns_total{flow="bill"} 1'])
  })

  it('have lanes by state, depth, the oldest lane, dead letters, pauses and bytes, from the store', async () => {
    const r = await rig(address, { diskUsed: async () => 0.5 })
    const send = async (key: string, quiet: number, id = key): Promise<void> => {
      await r.store.append({ routes: 1, events: [createEventToStore(id, { id, key, quiet, max: quiet }, 0)] })
    }
    const { flow } = createClaimRequest({})
    await send('waits', 1_000_000)
    await send('ready', 0)
    await send('fails', 0)
    const call = { process: 'p', routes: 1, budget: 1_000_000 }
    const { claimed } = await r.store.settleAndClaim({
      ...call,
      request: 1,
      settle: [],
      claim: [createClaimRequest({ maxRuns: 2 })],
    })
    const [dead, fails] = claimed.toSorted((a, b) => b.key.localeCompare(a.key))
    const end = { attempt: undefined, publish: [], whileRunning: 'window', keep: 0 } as const
    const settle = [
      { ...end, lane: dead?.lane ?? '', token: dead?.token ?? 0, outcome: { kind: 'dead', reason: 'x', block: false } },
      { ...end, lane: fails?.lane ?? '', token: fails?.token ?? 0, outcome: { kind: 'retry', after: 1_000_000 } },
    ] as const
    await r.store.settleAndClaim({ ...call, request: 2, settle, claim: [] })
    await send('ready', 0, 'another')
    await r.advance(30_000)
    const of = `{flow="${flow}"`
    expect(await r.lines('sluice_lanes')).toEqual([
      `sluice_lanes${of},state="waiting"} 1`,
      `sluice_lanes${of},state="ready"} 1`,
      `sluice_lanes${of},state="retrying"} 1`,
    ])
    expect(await r.lines('sluice_depth_events')).toEqual([
      `sluice_depth_events${of},state="waiting"} 2`,
      `sluice_depth_events${of},state="failing"} 1`,
    ])
    expect(await r.lines('sluice_oldest_ready_seconds')).toEqual([`sluice_oldest_ready_seconds${of}} 30`])
    expect(await r.lines('sluice_dead_letters_kept')).toEqual(['sluice_dead_letters_kept 1'])
    expect(await r.lines('sluice_flow_paused')).toEqual([`sluice_flow_paused${of}} 0`])
    expect(await r.lines('sluice_store_up')).toEqual(['sluice_store_up 1'])
    expect(await r.lines('sluice_store_bytes')).toHaveLength(1)
    expect(await r.lines('sluice_store_disk')).toEqual(['sluice_store_disk_used_ratio 0.5'])
    // Only a server with automatic vacuum has values here.
    expect(await r.lines('sluice_store_dead')).toEqual([])
    expect(await r.lines('sluice_store_oldest')).toEqual([])
  })

  it('declared flows have their own rows, however many; others share one, with the oldest lane of all', async () => {
    const flows = Array.from({ length: 230 }, (_, n) => `flow-${n}`)
    const r = await rig(address, { flows: () => flows })
    const all = [...flows, ...Array.from({ length: 230 }, (_, n) => `of-another-app-${n}`)]
    const events = all.map((flow) => createEventToStore(flow, { id: flow, flow, key: 'k' }, 0))
    await r.store.append({ routes: 1, events })
    await r.store.steer({ what: 'flows', ids: all, act: { kind: 'pause', reason: 'x', by: 'ada' } })
    for (const flow of flows) r.p.events.emit('event.skipped', { event: 'e', source: 's', type: 't', flow, text: '' })
    await r.advance(30_000)
    const of = async (metric: string, state = ''): Promise<readonly (string | undefined)[]> => {
      const lines = await r.lines(metric)
      return [...flows, 'other'].map((flow) =>
        lines.find((line) => line.startsWith(`${metric}{flow="${flow}"${state}`))?.replace(/.* /, ''),
      )
    }
    const each = (value: string, other: unknown): unknown[] => [...flows.map(() => value), other]
    expect(await of('sluice_oldest_ready_seconds')).toEqual(each('30', '30'))
    expect(await of('sluice_flow_paused')).toEqual(each('1', '1'))
    expect(await of('sluice_lanes', ',state="ready"')).toEqual(each('1', undefined))
    expect(await of('sluice_depth_events', ',state="waiting"')).toEqual(each('1', undefined))
    expect(await of('sluice_events_skipped_total')).toEqual(each('1', undefined))
  })

  it('simultaneous scrapes get the same result, computed once', async () => {
    const r = await rig(address)
    const texts = await Promise.all([r.metrics.render(), r.metrics.render()])
    expect(texts[0]).toBe(texts[1])
    expect(texts[0]).toContain('\nsluice_store_up 1\n')
  })

  it('when the store does not respond, a metric says so, and all counters are still there', async () => {
    const r = await rig(address, { store: gone })
    r.p.receive('shop', 'paid')
    expect(await r.lines('sluice_store_up')).toEqual(['sluice_store_up 0'])
    expect(await r.lines('sluice_events_received')).toHaveLength(1)
  })

  it('measure the calls of a metered store, count its failures, and the slots of limits without their keys', async () => {
    const r = await rig(address)
    const store = r.metrics.meterStore(r.store)
    await store.stats()
    await expect(store.reserve(undefined as never)).rejects.toThrow()
    const limits = [{ name: 'api/secret-key', rate: 1, per: 1_000, burst: 0, cost: 1 }]
    const requests = ['a', 'b', 'c'].map((ticket, n) => ({ ticket, limits, maxWait: n === 2 ? 0 : 60_000 }))
    await store.reserve({ requests })
    r.p.events.emit('limit.slowed', { limit: 'api/secret-key' })
    expect(await r.lines('sluice_store_seconds_count')).toEqual([
      'sluice_store_seconds_count{member="stats"} 1',
      'sluice_store_seconds_count{member="reserve"} 1',
    ])
    expect(await r.lines('sluice_store_failures')).toEqual(['sluice_store_failures_total{member="reserve"} 1'])
    expect(await r.lines('sluice_limit_calls')).toEqual(['sluice_limit_calls_total{limit="api"} 1'])
    expect(await r.lines('sluice_limit_wait_seconds_count')).toEqual(['sluice_limit_wait_seconds_count{limit="api"} 1'])
    expect(await r.lines('sluice_limit_put_off')).toEqual(['sluice_limit_put_off_total{limit="api"} 1'])
    expect(await r.lines('sluice_limit_busy_seconds')).toEqual(['sluice_limit_busy_seconds{limit="api"} 2.2'])
    expect(await r.lines('sluice_limit_refused')).toEqual(['sluice_limit_refused_total{limit="api"} 1'])
  })

  it('a metered store behaves like the store', async () => {
    const r = await rig(address)
    const store = r.metrics.meterStore(r.store)
    const heard: unknown[] = []
    const off = store.listen((hint) => void heard.push(hint))
    await store.append({ routes: 1, events: [createEventToStore('a', { id: 'a', key: 'a' }, 0)] })
    expect(heard.length).toBeGreaterThan(0)
    off()
    expect((await store.get({ kind: 'events', id: 'a' })).item?.id).toBe('a')
  })
})

describe('the flows that an app declares', () => {
  it('have rows before anything was counted, so that the first count is an increase', async () => {
    const r = await rig('memory:', { flows: () => ['bill'] })
    expect(await r.lines('sluice_dead_letters_total')).toEqual(['sluice_dead_letters_total{flow="bill"} 0'])
    const before = await r.lines('sluice_attempts_total')
    expect(before).toHaveLength(9)
    expect(before).toContain('sluice_attempts_total{flow="bill",ending="dead"} 0')
    r.p.end('bill', { kind: 'dead', reason: 'x', block: false })
    expect(await r.lines('sluice_dead_letters_total')).toEqual(['sluice_dead_letters_total{flow="bill"} 1'])
    expect(await r.lines('sluice_attempts_total')).toContain('sluice_attempts_total{flow="bill",ending="dead"} 1')
  })

  it('have a row each, however many they are, and do not displace other rows', async () => {
    const declared = Array.from({ length: 300 }, (_, n) => `flow-${n}`)
    const r = await rig('memory:', { flows: () => declared })
    expect(await r.lines('sluice_dead_letters_total')).toHaveLength(300)
    r.p.end('of-another-app', { kind: 'dead', reason: 'x', block: false })
    expect(await r.lines('sluice_dead_letters_total')).toContain('sluice_dead_letters_total{flow="of-another-app"} 1')
  })
})

describe('the text', () => {
  it('has lateness and loop lag as histograms, and metrics of the process', async () => {
    const r = await rig('memory:')
    r.p.events.emit('lane.due', { flow: 'bill', key: 'k', due: 0, late: 20 })
    r.metrics.recordLag(3)
    expect(await r.lines('sluice_lateness_seconds_bucket{flow="bill",le="0.05"}')).toHaveLength(1)
    expect(await r.lines('sluice_event_loop_lag_seconds_sum')).toEqual(['sluice_event_loop_lag_seconds_sum 0.003'])
    const text = await r.metrics.render()
    expect(text).toContain('process_resident_memory_bytes')
    expect(text).toContain('nodejs_eventloop_lag_seconds')
  })

  it('is well-formed for any names', async () => {
    const r = await rig('memory:')
    r.p.receive('a"b\\c\nd', 'x')
    for (const line of (await r.metrics.render()).split('\n')) {
      expect(line).toMatch(/^(?:|# (?:HELP|TYPE) .*|[a-z_:][a-z0-9_:]*(?:\{.*\})? \S+)$/i)
    }
  })

  it('never contains a key, a tenant or an id', async () => {
    const r = await rig('memory:')
    const told = { ...RUN, ms: 1 }
    r.p.events.emit('run.claimed', { ...RUN, due: 0, late: 0 })
    r.p.events.emit('run.deferred', { ...told, after: 1, why: 'x' })
    r.p.events.emit('lane.due', { flow: 'bill', key: 'secret-key', due: 0, late: 0 })
    r.p.events.emit('limit.slowed', { limit: 'api/secret-key' })
    r.p.events.emit('alert.raised', { alert: 'hangs:bill/secret-key', text: 'x' })
    await r.store.append({ routes: 1, events: [createEventToStore('run-id', { id: 'run-id', key: 'secret-key' }, 0)] })
    const text = await r.metrics.render()
    expect(text).toContain('sluice_alerts_raised_total{alert="hangs"} 1')
    for (const secret of ['secret-key', 'acme', 'run-id']) expect(text).not.toContain(secret)
  })

  it('is bounded for any number and length of names', async () => {
    const r = await rig('memory:')
    for (let n = 0; n < 10_000; n++) r.p.receive(`source-${n}`, 'x')
    r.p.receive('y'.repeat(1_000_000), 'x')
    const lines = await r.lines('sluice_events_received')
    expect(lines).toHaveLength(201)
    expect(lines.at(-1)).toBe('sluice_events_received_total{source="other"} 9801')
    expect((await r.metrics.render()).length).toBeLessThan(100_000)
  })

  it('loads its library only when it is requested', async () => {
    const metrics = fileURLToPath(new URL('../../src/observe/metrics/metrics.ts', import.meta.url))
    const code = `
      import { createRequire } from 'node:module'
      const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes('prom-client'))
      const { Metrics } = await import(${JSON.stringify(metrics)})
      const clock = { now: () => 0, monotonic: () => 0, after: () => () => {} }
      const made = new Metrics({ events: { on() {} }, clock, now: () => 0, store: () => Promise.reject(new Error()) })
      const before = loaded()
      await made.render()
      console.log(JSON.stringify([before, loaded()]))`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code])
    expect(JSON.parse(stdout)).toEqual([false, true])
  })
})
