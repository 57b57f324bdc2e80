// The log of a lane's life: levels, contents, what is left out, and one line per entry for any texts.
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { Emitter, type EventMap, type EventName } from '../../src/observe/emitter.ts'
import { createEventLog, createRunLog } from '../../src/observe/log/log.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { NAME, scene } from './log-scene.ts'

const RUN = { flow: 'f', key: 'k', run: 'r1', tenant: '', attempt: 1, events: 2 }
const OF_EVENT = { event: 'e', source: 's', type: 't' }
const ENDED = { ...RUN, ms: 5 }

const EVERYTHING: EventMap = {
  'event.received': { ...OF_EVENT, lanes: 1 },
  'event.duplicate': { ...OF_EVENT, of: 'd' },
  'event.conflict': { ...OF_EVENT, of: 'd' },
  'event.refused': { ...OF_EVENT, field: 'id', fix: 'shorten it' },
  'event.skipped': { ...OF_EVENT, flow: 'f', text: 'skipped by f: no key' },
  'event.unwanted': { ...OF_EVENT, text: 'no flow wants this event' },
  'event.unrouted': { ...OF_EVENT, flow: 'f', reason: 'key-failed', error: 'no' },
  'lane.opened': { flow: 'f', key: 'k' },
  'lane.due': { flow: 'f', key: 'k', due: 0, late: 0 },
  'lane.held': { flow: 'f', key: 'k', reason: 'r', by: 'ada' },
  'run.claimed': { ...RUN, due: 0, late: 0 },
  'run.started': RUN,
  'run.done': { ...ENDED, counts: { sent: 2 } },
  'run.snoozed': { ...ENDED, after: 5 },
  'run.deferred': { ...ENDED, after: 5, why: 'more' },
  'run.retry': { ...ENDED, error: 'no', after: 5 },
  'run.partial': { ...ENDED, error: 'no', failed: 1 },
  'run.cancelled': ENDED,
  'run.lost': { ...ENDED, why: 'lease' },
  'run.dead': { ...ENDED, error: 'no' },
  'run.dropped': { ...ENDED, reason: 'by hand', counts: {} },
  'limit.paused': { limit: 'l', ms: 5 },
  'limit.slowed': { limit: 'l' },
  'limit.resumed': { limit: 'l' },
  'alert.raised': { alert: 'a', text: 't' },
  'alert.cleared': { alert: 'a', text: 't' },
  'flow.paused': { flow: 'f', reason: 'r', by: 'ada' },
  'flow.resumed': { flow: 'f', by: 'ada' },
  'flow.unserved': { flow: 'f', lanes: 1 },
  'source.keyed': { source: 's' },
  'key.refused': { address: '10.0.0.9' },
  'api.failed': { method: 'GET', path: '/v1/events', error: 'no' },
  'replay.started': { replay: 'r', found: 3 },
  'replay.done': { replay: 'r', placed: 3 },
  'replay.cancelled': { replay: 'r', placed: 1 },
  'endpoint.opened': { endpoint: 'e', reason: 'r' },
  'endpoint.recovered': { endpoint: 'e', reason: 'r' },
  'endpoint.disabled': { endpoint: 'e', reason: 'r' },
  'config.conflict': { flow: 'f', text: 't' },
  'store.lost': { error: 'no' },
  'store.found': { ms: 5 },
}

function emitAll(emitter: Emitter): void {
  for (const name of Object.keys(EVERYTHING) as EventName[]) emitter.emit(name, EVERYTHING[name])
}

describe('entries', () => {
  it('there is one for each event name, with the name as msg, its fields and the time of the clock', () => {
    const t = scene({ level: 'trace' })
    t.clock.advance(1_234)
    emitAll(t.emitter)
    const entries = t.entries()
    expect(entries.map((entry) => entry['msg'])).toEqual(Object.keys(EVERYTHING))
    for (const { level, time, msg, ...fields } of entries) {
      expect(level).toBeTypeOf('number')
      expect(time).toBe(Date.UTC(2026, 0, 1) + 1_234)
      expect(fields).toEqual(EVERYTHING[msg as EventName])
    }
  })

  it('each has its level', () => {
    const t = scene({ level: 'trace' })
    emitAll(t.emitter)
    const loud = Map.groupBy(t.entries(), (entry) => entry['level'])
    const names = (level: number): string[] => (loud.get(level) ?? []).map((entry) => String(entry['msg'])).toSorted()
    expect(names(50)).toEqual(['api.failed', 'run.dead', 'store.lost'])
    expect(names(40)).toEqual(
      [
        'run.retry',
        'run.lost',
        'event.conflict',
        'event.refused',
        'event.unrouted',
        'flow.unserved',
        'alert.raised',
        'config.conflict',
        'endpoint.opened',
        'endpoint.disabled',
        'limit.paused',
        'key.refused',
      ].toSorted(),
    )
    expect(names(30)).toEqual(
      [
        'endpoint.recovered',
        'run.done',
        'run.snoozed',
        'run.deferred',
        'run.partial',
        'run.dropped',
        'run.cancelled',
        'flow.paused',
        'flow.resumed',
        'limit.resumed',
        'source.keyed',
        'replay.started',
        'replay.done',
        'replay.cancelled',
      ].toSorted(),
    )
    expect(loud.size).toBe(4)
  })

  it.each([
    ['silent', 0],
    ['error', 3],
    ['warn', 15],
    [undefined, 29],
    ['debug', 41],
  ] as const)('level %s lets %i through', (level, n) => {
    const t = scene(level === undefined ? {} : { level })
    emitAll(t.emitter)
    expect(t.entries()).toHaveLength(n)
  })

  it('a measured time has at most three decimals', () => {
    const t = scene()
    const run = { flow: 'f', key: 'k', run: 'r', tenant: '', attempt: 1, events: 1 }
    t.emitter.emit('run.cancelled', { ...run, ms: 5.069140000000516 })
    expect(t.entries()).toMatchObject([{ msg: 'run.cancelled', ms: 5.069 }])
  })

  it('a stream that fails affects nothing else', () => {
    const emitter = new Emitter()
    createEventLog(emitter, { destination: { write: () => expect.fail('it is full') } as never }, new VirtualClock())
    expect(() => emitAll(emitter)).not.toThrow()
  })

  it('a logger of the user keeps its own settings and time', () => {
    const t = scene()
    const clock = new VirtualClock(42)
    const own = pino({ level: 'error', base: { app: 'mine' }, timestamp: () => ',"time":7' }, t.out)
    createEventLog(t.emitter, { destination: own }, clock)
    t.emitter.emit('store.lost', { error: 'secret=abc' })
    const [, theirs] = t.entries()
    expect(theirs).toEqual({ level: 50, time: 7, app: 'mine', error: 'secret=[redacted]', at: 42, msg: 'store.lost' })
    const louder = createEventLog(new Emitter(), { destination: own, level: 'debug' }, clock)
    expect([louder.level, own.level]).toEqual(['debug', 'error'])
  })
})

const HOSTILE = 'x\n{"level":60,"msg":"forged"}\r\n2026-01-01T00:00:00.000Z FATAL forged\u2028\u001b[2K\u0085'

describe.each(['json', 'pretty-lines'] as const)('as %s', (format) => {
  it('one entry is one line, whatever its texts contain', () => {
    const t = scene({ format, level: 'trace' })
    emitAll(t.emitter)
    expect(t.text().split('\n')).toHaveLength(Object.keys(EVERYTHING).length + 1)
    t.emitter.emit('run.dead', { ...ENDED, key: HOSTILE, flow: HOSTILE, error: HOSTILE })
    createRunLog(t.logger, { ...NAME, key: HOSTILE }).warn(HOSTILE, { [HOSTILE]: { deep: [HOSTILE] } })
    const text = t.text()
    expect(text.split('\n')).toHaveLength(3)
    for (const mark of ['\r', '\u001b']) expect(text).not.toContain(mark)
    if (format === 'pretty-lines') expect(text).not.toMatch(/[\u2028\u0085]/)
  })
})

it('readable lines have a time, a level, a name and fields', () => {
  const t = scene({ format: 'pretty-lines' })
  t.emitter.emit('run.retry', { ...ENDED, ms: 5.123499999, key: 'a "b"', error: 'no', after: 250 })
  t.emitter.emit('run.done', { ...ENDED, ms: 1, tenant: 't1', counts: {} })
  createRunLog(t.logger, NAME).info('half-way there', { done: 3, parts: { left: ['x'] } })
  expect(t.text().split('\n')).toEqual([
    String.raw`2026-01-01T00:00:00.000Z WARN  run.retry flow="f" key="a \"b\"" run="r1" attempt=1 events=2 ms=5.123 error="no" after=250`,
    '2026-01-01T00:00:00.000Z INFO  run.done flow="f" key="k" run="r1" tenant="t1" attempt=1 events=2 ms=1',
    '2026-01-01T00:00:00.000Z INFO  half-way there flow="f" key="k" run="r1" attempt=1 done=3 parts={"left":["x"]}',
    '',
  ])
})
