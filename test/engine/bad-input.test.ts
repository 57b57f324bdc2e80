// Invalid options are rejected when the app is built, by a message that names the option. An invalid event is never stored.
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { Sluice, SluiceError, type EventInput, type FlowOptions, type LimitOptions, type Run } from '../../src/index.ts'
import { play, soon, STORES, emittedEvents } from './scene.ts'

function refusal(call: () => unknown): SluiceError {
  try {
    call()
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError)
    return error as SluiceError
  }
  throw new Error('It was not refused.')
}

function app(options: object = {}): Sluice {
  return new Sluice({ store: 'memory:', log: false, ...options })
}

function flowRefusal(options: object): SluiceError {
  const whole = { on: 'ping', run: () => {}, ...options } as unknown as FlowOptions<Run> & { run: () => void }
  return refusal(() => app().flow('f', whole))
}

const key = () => 'k'

describe('bad input: flows', () => {
  test.each<[string, object]>([
    ['max', { key, window: { quiet: '10s', max: '5s' } }],
    ['max', { key, window: { quiet: { from: '1s', to: '60s' }, max: '30s' } }],
    ['quiet', { key, window: { quiet: '10 seconds' } }],
    ['quiet', { key, window: { quiet: -1 } }],
    ['quiet', { key, window: { quiet: { from: '10s', to: '1s' } } }],
    ['quiet', { key, window: { quiet: { from: 0, to: '1s' } } }],
    ['quiet', { key, window: { quiet: Infinity } }],
    ['every', { key, window: { quiet: '1s', every: '2s' } }],
    ['every', { key, window: { every: '2s', max: '5s' } }],
    ['maxEvents', { key, window: { quiet: '1s', maxEvents: 0 } }],
    ['maxEvents', { key, maxEvents: 0 }],
    ['maxBytes', { key, window: () => ({}), maxBytes: 0.5 }],
    ['maxEvents', { key, maxEvents: 5, batch: { every: '1s', maxEvents: 5 } }],
    ['maxEvents', { key, window: { quiet: '1s', maxEvents: Number.NaN } }],
    ['maxBytes', { key, window: { quiet: '1s', maxBytes: 0 } }],
    ['jitter', { key, window: { quiet: '1s', jitter: 2 } }],
    ['jitter', { key, window: { every: '1s', jitter: 0.5 } }],
    ['leading', { key, window: { every: '1s', leading: true } }],
    ['whileRunning', { key, whileRunning: 'restart' }],
    ['take', { key, take: 'newest' }],
    ['onDead', { key, onDead: 'explode' }],
    ['share', { key, share: 'user' }],
    ['concurrency', { key, concurrency: 0 }],
    ['concurrency', { key, concurrency: 1.5 }],
    ['concurrency', { key, concurrency: '3' }],
    ['timeout', { timeout: 'soon' }],
    ['keep', { keep: 'long' }],
    ['retry', { retry: ['1s', 'later'] }],
    ['retries', { retry: { first: '1s', retries: -1 } }],
    ['factor', { retry: { first: '1s', retries: 1, factor: 0.5 } }],
    ['jitter', { retry: { delays: ['1s'], jitter: 1 } }],
    ['maxLanesPerTenant', { key, maxLanesPerTenant: 5 }],
    ['maxLanesPerTenant', { key, window: { quiet: '1s' }, maxLanesPerTenant: 0 }],
    ['debounced', { key, debounced: '10s' }],
    ['run', { run: undefined }],
    ['on', { on: [] }],
    ['on', { on: undefined }],
    ['on', { on: [5] }],
    ['on', { on: '' }],
  ])('%s: %j', (option, options) => {
    const error = flowRefusal(options)
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain(option)
    expect(error.fix).not.toBe('')
  })

  test.each<[string, object]>([
    ['take', { take: 'last' }],
    ['whileRunning', { whileRunning: 'requeue' }],
    ['onDead', { onDead: 'block' }],
    ['maxEvents', { window: { quiet: '1s', maxEvents: 5 } }],
    ['maxBytes', { window: { quiet: '1s', maxBytes: 5 } }],
    ['maxEvents', { maxEvents: 5 }],
    ['maxBytes', { maxBytes: 5 }],
    ['leading', { window: { quiet: '1s', leading: true } }],
  ])('%s would be ignored without key: %j', (option, options) => {
    const error = flowRefusal(options)
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain(option)
    expect(error.message).toContain('key')
  })

  test('two flows with one name are rejected', () => {
    const one = app().flow('rank', { on: 'ping', run: () => {} })
    const error = refusal(() => one.flow('rank', { on: 'pong', run: () => {} }))
    expect(error.message).toContain('"rank"')
  })

  test.each(['', ' ', 'a b', 'x'.repeat(200), '-a'])('a flow name like %j is rejected', (name) => {
    expect(refusal(() => app().flow(name, { on: 'ping', run: () => {} })).code).toBe('CONFIG_INVALID')
  })

  test('a flow cannot be added after start', async () => {
    const one = app()
    await one.start()
    expect(refusal(() => one.flow('late', { on: 'ping', run: () => {} })).message).toContain('start')
    await one.stop()
  })
})

describe('bad input: apps, limits and schedules', () => {
  test.each<[string, object]>([
    ['lease', { lease: '20s', heartbeat: '10s' }],
    ['lease', { lease: 'x' }],
    ['heartbeat', { heartbeat: 0 }],
    ['maxConcurrentRuns', { maxConcurrentRuns: 0 }],
    ['maxConcurrentRuns', { maxConcurrentRuns: 1.5 }],
    ['poll', { poll: 0 }],
    ['grace', { grace: -1 }],
    ['dedupe', { dedupe: 'a week' }],
    ['keep.bytes', { keep: { bytes: 0 } }],
    ['keep.deadLetters', { keep: { deadLetters: 'x' } }],
    ['keep.events', { keep: { events: { shop: 'x' } } }],
    ['keep.events', { keep: { events: ['1d'] } }],
    ['keep.events', { keep: { events: null } }],
    ['keep.events', { keep: { events: { shop: ['1d'] } } }],
    ['keep.deadLetters', { keep: { deadLetters: ['1d'] } }],
    ['addressRate', { addressRate: null }],
    ['addressRate', { addressRate: [{ rate: 5, per: '1m' }] }],
    ['addressRate', { addressRate: { rate: 5, per: '1m', burst: 9 } }],
    ['delivery', { delivery: [] }],
    ['delivery', { delivery: { deadline: ['5s'] } }],
    ['lateAfter', { lateAfter: 'x' }],
    ['traces', { traces: null }],
    ['traces', { traces: true }],
    ['traces', { traces: {} }],
    ['key', { key: null }],
    ['key', { key: 5 }],
    ['key', { key: ['', null] }],
    ['clock', { clock: null }],
    ['clock', { clock: 5 }],
    ['clock', { clock: { now: () => 0 } }],
    ['concurrency', { concurrency: 5 }],
  ])('new Sluice: %s: %j', (option, options) => {
    const error = refusal(() => app(options))
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain(option)
  })

  test.each<[string, string, unknown]>([
    ['log', 'log', true],
    ['log', 'log', null],
    ['log', 'log', 'debug'],
    ['log', 'log', []],
    ['log.levl', 'level', { levl: 'debug' }],
    ['log.level', 'debug', { level: 'loud' }],
    ['log.level', 'debug', { level: 30 }],
    ['log.format', 'pretty-lines', { format: 'prety' }],
    ['log.format', 'logger', { format: 'json', destination: pino({ level: 'silent' }) }],
    ['log.redact', 'list', { redact: 'email' }],
    ['log.redact', 'list', { redact: ['email', 5] }],
    ['log.redact', 'list', { redact: [''] }],
    ['log.destination', 'stream', { destination: 'app.log' }],
    ['log.destination', 'stream', { destination: null }],
    ['log.destination', 'stream', { destination: {} }],
  ])('new Sluice: %s, and the message has %s (case %#)', (option, fix, log) => {
    const error = refusal(() => app({ log }))
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain(`${option} `)
    expect(error.message).toContain(fix)
  })

  test('log accepts its documented values and rejects others', () => {
    for (const log of [false, undefined, {}, { level: 'silent' }, { destination: process.stderr, level: 'error' }]) {
      expect(() => app({ log })).not.toThrow()
    }
    const own = pino({ level: 'silent' })
    expect(() => app({ log: { destination: own, redact: ['email', 'user.name'] } })).not.toThrow()
  })

  test('new Sluice names the option that must be an object', () => {
    expect(() => app({ admin: 5 })).toThrow('new Sluice: admin must be an object; got ')
    expect(() => app({ addressRate: 5 })).toThrow('new Sluice: addressRate must be an object; got ')
  })

  test.each([null, 5, 'events', true, []])('new Sluice rejects keep: %j', (keep) => {
    const error = refusal(() => app({ keep }))
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain('keep ')
  })

  test.each<[string, object]>([
    ['rate', { rate: 0, per: '1s' }],
    ['rate', { rate: 1.5, per: '1s' }],
    ['rate', { per: '1s' }],
    ['per', { rate: 3, per: 'second' }],
    ['per', { rate: 3, per: '1ms' }],
    ['burst', { rate: 3, per: '1s', burst: -1 }],
    ['maxWait', { rate: 3, per: '1s', maxWait: 'x' }],
    ['interval', { rate: 3, per: '1s', interval: 5 }],
  ])('limit: %s: %j', (option, options) => {
    const error = refusal(() => app().limit('api', options as unknown as LimitOptions))
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain(option)
  })

  test('two limits with one name are rejected', () => {
    const one = app()
    one.limit('api', { rate: 3, per: '1s' })
    expect(refusal(() => one.limit('api', { rate: 3, per: '1s' })).message).toContain('"api"')
  })

  test.each([
    ['no cron', 'whenever'],
    ['too often', '5ms'],
    ['nothing', ''],
    ['minute 61', '61 * * * *'],
  ])('every: %s', (_name, when) => {
    const error = refusal(() => app().every('sweep', when, () => {}))
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain('sweep')
  })

  test('every: the message has the reason, with one full stop', () => {
    expect(refusal(() => app().every('sweep', '5 minutes', () => {})).message).toMatch(
      /^CONFIG_INVALID: every\("sweep"\) must have a duration like '5m' or a cron expression like '0 8 \* \* \*'; got "5 minutes": [^:]+[^.]\. Correct/,
    )
  })

  test.each<[string, string, string, unknown]>([
    ['timezone', 'timeZone', '0 3 * * *', { timezone: 'Europe/Berlin' }],
    ['timezone', 'timeZone', '5m', { timezone: 'Europe/Berlin' }],
    ['timeZone', '5m', '5m', { timeZone: 'Mars' }],
    ['timeZone', '5m', '5m', { timeZone: 'UTC' }],
    ['timeZone', 'Mars', '0 3 * * *', { timeZone: 'Mars' }],
    ['timeZone', 'Europe/Berlin', '0 3 * * *', { timeZone: '' }],
    ['timeZone', 'Europe/Berlin', '0 3 * * *', { timeZone: null }],
    ['timeZone', 'Europe/Berlin', '0 3 * * *', { timeZone: 60 }],
    ['options', 'timeZone', '0 3 * * *', 'Europe/Berlin'],
    ['options', 'timeZone', '0 3 * * *', null],
  ])('every: %s, and the message has %s (case %#)', (option, fix, when, options) => {
    const error = refusal(() => app().every('sweep', when, () => {}, options as never))
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain('every("sweep")')
    expect(error.message).toContain(option)
    expect(error.message).toContain(fix)
  })

  test.each<[unknown]>([[''], [undefined], [5], ['a b'], ['x'.repeat(200)]])('every rejects a name like %j', (name) => {
    const error = refusal(() => app().every(name as string, '5m', () => {}))
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toContain('name')
  })

  test('an unknown store address is rejected', async () => {
    const one = new Sluice({ store: 'mongo:here', log: false })
    await expect(one.start()).rejects.toMatchObject({ code: 'STORE_UNKNOWN' })
  })
})

describe.each(STORES)('bad input: events on %s', (store) => {
  const circular: Record<string, unknown> = {}
  circular['self'] = circular

  test.each<[string, unknown]>([
    ['type', { data: 1 }],
    ['dta', { type: 'ping', dta: 1 }],
    ['event', null],
    ['event', 'ping'],
    ['type must be set', {}],
    ['type', { type: '' }],
    ['type', { type: 5 }],
    ['type', { type: 'x'.repeat(2_000) }],
    ['type', { type: '\uD800' }],
    ['source', { type: 'ping', source: '' }],
    ['tenant', { type: 'ping', tenant: 5 }],
    ['tenant', { type: 'ping', tenant: 'é'.repeat(513) }],
    ['subject', { type: 'ping', subject: {} }],
    ['subject', { type: 'ping', subject: 's'.repeat(16_385) }],
    ['id', { type: 'ping', id: '' }],
    ['dedupeId', { type: 'ping', dedupeId: '' }],
    ['time', { type: 'ping', time: 'yesterday' }],
    ['time', { type: 'ping', time: Number.NaN }],
    ['time', { type: 'ping', time: new Date(Number.NaN) }],
    ['time', { type: 'ping', time: 8.64e15 + 1 }],
    ['data', { type: 'ping', data: 10n }],
    ['data', { type: 'ping', data: circular }],
    ['data', { type: 'ping', data: () => {} }],
    ['attributes', { type: 'ping', attributes: { n: 10n } }],
    ['body', { type: 'ping', data: 1, body: 'x' }],
    ['body', { type: 'ping', body: Buffer.alloc(100 * 1024 * 1024 + 1) }],
    ['attributes', { type: 'ping', attributes: { long: '€'.repeat(6_000_000) } }],
  ])('%s (case %#) is refused by name, and nothing is stored', async (field, event) => {
    const t = await play(store, (one) => one.flow('f', { on: '**', run: () => {} }))
    const error = await t.send([{ type: 'good' }, event as EventInput]).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SluiceError)
    expect((error as SluiceError).code).toBe('EVENT_INVALID')
    expect((error as SluiceError).message).toContain(field)
    await soon(t)
    expect(t.runs).toEqual([])
    expect(emittedEvents(t, 'event.received')).toEqual([])
  })

  test('an invalid `at` is rejected', async () => {
    const t = await play(store, (one) => one.flow('f', { on: '**', run: () => {} }))
    await expect(t.send({ type: 'ping' }, { at: 'noon' as unknown as number })).rejects.toMatchObject({
      code: 'EVENT_INVALID',
    })
    await expect(t.send({ type: 'ping' }, { at: Number.NaN })).rejects.toMatchObject({ code: 'EVENT_INVALID' })
    await t.advance('1h')
    expect(t.runs).toEqual([])
  })

  test('an event that is too large to wait is rejected with the limit', async () => {
    const t = await play(store, (one) => one.flow('f', { on: '**', run: () => {} }))
    const large = { type: 'ping', body: Buffer.alloc(60 * 1024 * 1024 + 1) }
    await expect(t.send(large, { at: 8.64e15 })).rejects.toThrow('at most 60 MB with at')
  })

  test('publishing an empty list is not an error', async () => {
    const t = await play(store, (one) => one.flow('f', { on: '**', run: () => {} }))
    expect(await t.send([])).toEqual([])
  })
})
