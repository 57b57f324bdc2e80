// What the scenarios do not show: the plain functions of the domain, the table of alerts, and who knows whom.
import { readFileSync } from 'node:fs'
import { expect, describe, it } from 'vitest'
import { AlertTable } from '../alert-table.ts'
import { parseAlert, type Alert } from '../domain/alert.ts'
import { consolidate, groupEvents } from '../domain/consolidate.ts'
import { DEFAULT_DEBOUNCING, PRESETS } from '../domain/debouncing.ts'
import { EVENT_TYPES, titleOf } from '../domain/event-types.ts'
import type { Pending } from '../domain/events.ts'
import { settingsFrom } from '../settings.ts'
import { lostEvents } from '../stand-in/redis-buckets.ts'

const ALERT: Alert = {
  id: 'alert',
  workspace: 'w',
  name: 'Errors',
  alert_type: 'general',
  event_types: ['trace:errors'],
  enabled: true,
  debouncing: DEFAULT_DEBOUNCING,
  endpoint: 'ep_1',
  created_at: 1,
}

function waits(event_id: string, more: Partial<Pending> = {}): Pending {
  return { alert: 'alert', event_type: 'trace:errors', event_id, debouncing: DEFAULT_DEBOUNCING, ...more }
}

describe('sending', () => {
  it('imports nothing of what collects and consolidates', () => {
    const known = importsOf(new URL('../sending.ts', import.meta.url))
    expect([...known].map((file) => file.split('/').at(-1))).toEqual([
      'sending.ts',
      'notification.ts',
      'event-types.ts',
    ])
    const config = importsOf(new URL('../sluice.config.ts', import.meta.url))
    expect([...config].some((file) => file.endsWith('/consolidate.ts'))).toBe(true)
  })
})

/** The files of the app that a file imports, directly or not, types included. */
function importsOf(file: URL, known = new Set<string>()): ReadonlySet<string> {
  if (known.has(file.href)) return known
  known.add(file.href)
  for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import) ?\(?'(\.[^']+)'/g))
    importsOf(new URL(path, file), known)
  return known
}

function projectOf(events: readonly Pending[]): string | undefined {
  return consolidate(ALERT, events, { seed: '', at: 0 }).project_id
}

describe('consolidating', () => {
  it('keeps the events of a window together, and an event without a window alone', () => {
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((id, n) => {
      const debouncing = n < 2 ? DEFAULT_DEBOUNCING : PRESETS['real-time']
      return { data: waits(id, { debouncing }) }
    })
    if (a === undefined || b === undefined || c === undefined || d === undefined) throw new Error('There are four.')
    expect(groupEvents([a, c, b, d])).toEqual([[a, b], [c], [d]])
    expect(groupEvents([c])).toEqual([[c]])
  })

  it('makes the same id in each attempt, a UUID of version 7 with the time', () => {
    const at = Date.UTC(2026, 0, 1)
    const make = (seed: string): string => consolidate(ALERT, [waits('a')], { seed, at }).id
    expect(make('run/0')).toBe(make('run/0'))
    expect(make('run/0')).not.toBe(make('run/1'))
    expect(make('run/0')).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
    expect(parseInt(make('run/0').replaceAll('-', '').slice(0, 12), 16)).toBe(at)
  })

  it('names a project only if all events are of it', () => {
    const [same, other] = [waits('a', { project_id: 'p' }), waits('b', { project_id: 'q' })]
    expect([projectOf([same, same]), projectOf([same, other]), projectOf([waits('c')])]).toEqual([
      'p',
      undefined,
      undefined,
    ])
  })

  it.each(EVENT_TYPES)('is an error for trace:errors only, for %s', (event_type) => {
    const { severity, text } = consolidate({ ...ALERT, alert_type: 'pagerduty' }, [waits('a', { event_type })], {
      seed: '',
      at: 0,
    })
    expect(severity).toBe(event_type === 'trace:errors' ? 'error' : 'info')
    expect(text).toContain(titleOf(event_type))
  })
})

describe('an alert', () => {
  it('has the defaults of the design', () => {
    const given = {
      workspace: 'w',
      name: 'n',
      alert_type: 'general',
      url: 'https://example.com',
      event_types: ['prompt:created'],
    }
    expect(parseAlert(given)).toMatchObject({
      enabled: true,
      debouncing: { enabled: true, window_size: 60_000 },
      headers: {},
    })
    expect(parseAlert({ ...given, debouncing: 'low-frequency' }).debouncing).toEqual(PRESETS['low-frequency'])
    expect(parseAlert({ ...given, debouncing: { enabled: false } }).debouncing).toEqual(PRESETS['real-time'])
  })

  it('keeps both of two changes at the same time, and none of a deleted one', async () => {
    const table = new AlertTable({ store: 'memory:', watch: (client) => client })
    await table.add(ALERT)
    await Promise.all([
      table.change('alert', (alert) => ({ ...alert, name: 'Other' })),
      table.change('alert', (alert) => ({ ...alert, enabled: false })),
    ])
    expect(await table.find('alert')).toEqual({ ...ALERT, name: 'Other', enabled: false })
    await table.remove('alert')
    expect(await table.change('alert', (alert) => alert)).toBeUndefined()
    expect(await table.ofWorkspace('w')).toEqual([])
  })

  it.each(['0', '1.5', 'many'])('is not built with a cap of %s', (value) => {
    expect(() => settingsFrom({ MAX_EVENTS_PER_KEY: value })).toThrow(
      `MAX_EVENTS_PER_KEY must be a whole number above 0; got ${value}.`,
    )
  })
})

describe('the buckets of the design', () => {
  const minute = 60_000
  const times = { window: minute, ttl: 3 * minute, down: { from: 0, to: 10 * minute } }
  const at = (minutes: number, key = 'k') => ({ at: minutes * minute, key })

  it.each([
    ['expire while the processor is down', [at(0), at(0.5), at(5, 'other')], 3],
    ['live on while events come', [0, 2, 4, 6, 8].map((n) => at(n)), 0],
    ['begin anew after they have expired', [at(0), at(6), at(8)], 1],
    ['are sent as long as the processor works', [at(11), at(11.5), at(20)], 0],
  ])('%s', (_, events, lost) => {
    expect(lostEvents(events, times)).toBe(lost)
  })
})
