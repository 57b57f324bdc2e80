// R1, R2, L10: the order of the steps, what is stored of a request, duplicates and their receipts, and failing closed (R3).
import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { Sluice, type SluiceError } from '../../src/index.ts'
import type { SourceOptions } from '../../src/receive/source-options.ts'
import type { Source } from '../../src/receive/source.ts'
import { cloudEvents, github, hmac, slack, standardWebhooks, strava, stripe } from '../../src/sources/index.ts'
import { eventsIn, githubHook, KEY, NOW, opened, problemOf, SECRET, textOf, withGithub } from './scene.ts'

interface Answered {
  readonly events: readonly { readonly id: string; readonly kind: string; readonly of?: string }[]
}

/** A source with one event per line, so that a request can have several. */
const LINES: Source = {
  scheme: 'lines',
  secrets: [],
  verify: 'none',
  events: ({ body }) =>
    textOf(body)
      .split('\n')
      .map((line) => ({ type: 'line', dedupeId: line, body: Buffer.from(line) })),
}

function lines(text: string): Request {
  return new Request('http://hooks.test/in/lines?a=1', { method: 'POST', body: text })
}

describe('the stored event', () => {
  it('has the body byte for byte, with the request beside it', async () => {
    const { app, store } = await opened(withGithub)
    const body = Buffer.from('{ "text" : "é\\u0000👍",\r\n"n":12345678901234567890 }\n')
    const response = await app.fetch(githubHook(body), { address: '192.0.2.9' })
    expect(response.status).toBe(202)
    const [event] = await eventsIn(store)
    expect(Buffer.from(event?.body ?? [])).toEqual(body)
    expect(event).toMatchObject({ source: 'github', type: 'push', arrived: NOW })
    expect(JSON.parse(textOf(event?.request))).toMatchObject({
      id: event?.id,
      at: NOW,
      method: 'POST',
      url: '/in/github',
      address: '192.0.2.9',
      headers: { 'x-github-delivery': 'd1' },
    })
  })

  it('runs in a flow that takes it', async () => {
    const { app } = await opened((one) => withGithub(one).flow('f', { on: 'github/push', run: () => {} }))
    const told: number[] = []
    app.on('event.received', ({ lanes }) => void told.push(lanes))
    await app.fetch(githubHook('{}'))
    expect(told).toEqual([1])
  })

  it('is one for each event of a request, with its own name', async () => {
    const { app, store } = await opened((one) => one.source('lines', LINES))
    const { events } = (await (await app.fetch(lines('a\nb\nc'))).json()) as Answered
    const [first] = events
    expect(events).toEqual(['', '-1', '-2'].map((n) => ({ id: `${first?.id}${n}`, kind: 'stored' })))
    const stored = await eventsIn(store)
    expect(stored.map(({ id, body }) => [id, textOf(body)])).toEqual([
      [first?.id, 'a'],
      [`${first?.id}-1`, 'b'],
      [`${first?.id}-2`, 'c'],
    ])
    expect(new Set(stored.map(({ request }) => (JSON.parse(textOf(request)) as { id: string }).id))).toEqual(
      new Set([first?.id]),
    )
  })

  it('has the request as it came, stored once, if its events are only parts of it', async () => {
    const { app, store } = await opened((one) => one.source('lines', LINES))
    await app.fetch(lines('one\ntwo'))
    const kept = (await eventsIn(store)).map(
      ({ request }) => JSON.parse(textOf(request)) as { readonly body64?: string },
    )
    expect(kept.map(({ body64 }) => body64)).toEqual([Buffer.from('one\ntwo').toString('base64'), undefined])
  })

  it('is none for a request with more events than the source allows', async () => {
    const { app, store } = await opened((one) => one.source('lines', LINES))
    const response = await app.fetch(lines('x\n'.repeat(10_001)))
    expect([response.status, (await problemOf(response)).code]).toEqual([413, 'TOO_MANY_EVENTS'])
    expect(await eventsIn(store)).toEqual([])
  })

  it('is none for a request without events', async () => {
    const { app, store } = await opened((one) => one.source('lines', { ...LINES, events: () => [] }))
    const response = await app.fetch(lines(''))
    expect([response.status, await response.json()]).toEqual([202, { events: [] }])
    expect(await eventsIn(store)).toEqual([])
  })
})

describe('L10 a duplicate', () => {
  it('gets the same response as the first event, and leaves a receipt there: time, request, hash of the body', async () => {
    const { app, store, clock } = await opened(withGithub)
    await app.fetch(githubHook('{}'))
    const told: string[] = []
    app.on('event.duplicate', ({ event }) => void told.push(event))
    clock.advance(90_000)
    expect((await app.fetch(githubHook('{}'))).status).toBe(202)
    const [first, ...others] = await eventsIn(store)
    expect(others).toEqual([])
    expect(first?.duplicates).toBe(1)
    const bodyHash = hash('sha256', '{}', 'base64url')
    expect(first?.receipts).toEqual([{ at: NOW + 90_000, kind: 'duplicate', event: told[0], bodyHash }])
    expect(told[0]).not.toBe(first?.id)
  })

  it('inside one request names this request in its receipt', async () => {
    const { app, store } = await opened((one) => one.source('lines', LINES))
    const { events: before } = (await (await app.fetch(lines('a\nb'))).json()) as Answered
    const { events } = (await (await app.fetch(lines('x\nb\nb'))).json()) as Answered
    const request = events[0]?.id
    expect(events).toEqual([
      { id: request, kind: 'stored' },
      { id: `${request}-1`, kind: 'duplicate', of: before[1]?.id },
      { id: `${request}-2`, kind: 'duplicate', of: before[1]?.id },
    ])
    const { item } = await store.get({ kind: 'events', id: before[1]?.id ?? '' })
    expect(item?.receipts?.map(({ event }) => event)).toEqual([`${request}-1`, `${request}-2`])
  })

  it('with another body is a conflict: 2xx, not stored, and its hash in the receipt', async () => {
    const { app, store } = await opened(withGithub)
    await app.fetch(githubHook('{"a":1}'))
    expect((await app.fetch(githubHook('{"a":2}'))).status).toBe(202)
    const [first, ...others] = await eventsIn(store)
    expect(others).toEqual([])
    expect(textOf(first?.body)).toBe('{"a":1}')
    const bodyHash = hash('sha256', '{"a":2}', 'base64url')
    expect(first?.receipts).toMatchObject([{ kind: 'conflict', bodyHash }])
  })

  it('is recognised for as long as the source says', async () => {
    const { app, store, clock } = await opened((one) =>
      one.source('github', github({ secret: SECRET }), { dedupe: '1h' }),
    )
    await app.fetch(githubHook('{}'))
    clock.advance(3_599_000)
    await app.fetch(githubHook('{}'))
    expect(await eventsIn(store)).toHaveLength(1)
    clock.advance(2_000)
    await app.fetch(githubHook('{}'))
    expect(await eventsIn(store)).toHaveLength(2)
  })
})

const boom = (): never => {
  throw new Error('boom')
}

describe('the steps', () => {
  it('run in order, and none after the first that rejects', async () => {
    const seen: string[] = []
    const refusal = { code: 'SIGNATURE_WRONG', what: '', fix: '' } as const
    const source = (at: string): Source => ({
      scheme: 'steps',
      secrets: ['s'],
      handshake: { verified: true, answer: () => void seen.push('greeted') },
      verify: () => (seen.push('verified'), at === 'verify' ? refusal : undefined),
      events: () => (seen.push('read'), at === 'events' ? { ...refusal, code: 'BODY_NOT_UNDERSTOOD' } : []),
    })
    const { app } = await opened((one) => {
      for (const at of ['verify', 'events', 'nowhere']) one.source(at, source(at))
    })
    const send = async (at: string): Promise<readonly unknown[]> => {
      seen.length = 0
      const { status } = await app.fetch(new Request(`http://hooks.test/in/${at}`, { method: 'POST' }))
      return [status, ...seen]
    }
    expect(await send('verify')).toEqual([401, 'verified'])
    expect(await send('events')).toEqual([400, 'verified', 'greeted', 'read'])
    expect(await send('nowhere')).toEqual([202, 'verified', 'greeted', 'read'])
  })

  it.each(['verify', 'events', 'handshake'] as const)('fail closed if %s of a source throws', async (step) => {
    const source = { ...LINES, secrets: ['s'], verify: () => undefined }
    const broken = { ...source, [step]: step === 'handshake' ? { verified: false, answer: boom } : boom }
    const { app, store } = await opened((one) => one.source('lines', broken))
    const response = await app.fetch(lines('a'))
    expect([response.status, (await problemOf(response)).code]).toEqual([400, 'BODY_NOT_UNDERSTOOD'])
    expect(await eventsIn(store)).toEqual([])
  })
})

function refused(declare: () => unknown): string {
  try {
    declare()
    return 'taken'
  } catch (error) {
    return (error as SluiceError).code
  }
}

const anything = (value: unknown): never => value as never

describe('a source', () => {
  const source = github({ secret: SECRET })

  it.each<readonly [string, unknown, SourceOptions]>([
    ['', source, {}],
    ['a/b', source, {}],
    ['x'.repeat(65), source, {}],
    ['a', undefined, {}],
    ['a', {}, {}],
    ['a', { ...source, verify: undefined }, {}],
    ['a', { ...source, verify: 'None' }, {}],
    ['a', { ...source, secrets: [] }, {}],
    ['a', { ...source, secrets: [''] }, {}],
    ['a', { ...source, secrets: ['good', ' '] }, {}],
    ['a', { ...source, secrets: [undefined] }, {}],
    ['a', { ...source, secrets: undefined }, {}],
    ['a', { ...source, secrets: 'text' }, {}],
    ['a', { ...source, maxEvents: 0 }, {}],
    ['a', { ...source, answer: { status: 99 } }, {}],
    ['a', { ...source, answer: { status: 199 } }, {}],
    ['a', { ...source, answer: { status: 300 } }, {}],
    ['a', { ...source, answer: { status: '200' } }, {}],
    ['a', { ...source, answer: { status: 200, body: {} } }, {}],
    ['a', { ...source, answer: { status: 200, headers: { 'x-a': 'a\nb' } } }, {}],
    ['a', stripe({ secret: SECRET }), { dedupe: '599s' }],
    ['a', slack({ secret: SECRET, tolerance: '1h' }), { dedupe: '1h' }],
    ['a', hmac({ secret: SECRET, header: 'x', timestamp: 't' }), { dedupe: '5m' }],
    ['a', cloudEvents({ verify: hmac({ secret: SECRET, header: 'x', timestamp: 't' }) }), { dedupe: '5m' }],
    ['a', standardWebhooks({ secret: 'whsec_AAAA' }), { dedupe: '1s' }],
    ['a', strava({ verifyToken: 't', subscriptionId: 1, secret: SECRET }), { dedupe: '1s' }],
    ['a', source, anything({ maxbody: 1 })],
    ['a', source, { maxBody: 0 }],
    ['a', source, { maxBody: 104_857_601 }],
    ['a', source, { maxBody: Infinity }],
    ['a', source, { rate: { rate: 0, per: '1s' } }],
    ['a', source, { rate: { rate: 1, per: '0s' } }],
    ['a', source, { subjectRate: { rate: 0, per: '1s' } }],
    ['a', source, { subjectRate: { rate: 1, per: '0s' } }],
    ['a', source, { dedupe: anything('soon') }],
    ['a', source, { path: 'in' }],
    ['a', source, { path: '/in?a' }],
    ['a', source, { path: '/ä' }],
    ['a', source, { path: '/in/../out' }],
    ['a', source, { path: '//in' }],
  ])('is not declared as %j, %j, %j', (name, given, options) => {
    const app = new Sluice({ store: 'memory:', log: false })
    expect(refused(() => app.source(name, given as Source, options))).toBe('CONFIG_INVALID')
  })

  it('recognises duplicates for at least as long as its signatures are valid, or as configured', () => {
    const app = new Sluice({ store: 'memory:', log: false })
    expect(refused(() => app.source('a', stripe({ secret: SECRET }), { dedupe: '10m' }))).toBe('taken')
    expect(refused(() => app.source('b', source, { dedupe: '1s' }))).toBe('taken')
    expect(refused(() => app.source('c', { ...source, answer: { status: 204 } }))).toBe('taken')
  })

  it('has a unique name and path, and must be declared before start', async () => {
    const { app } = await opened((one) => withGithub(one).source('second', source, { path: '/hooks/%C3%A4' }), {
      encryptionKey: KEY,
    })
    expect(refused(() => app.source('github', source, { path: '/other' }))).toBe('CONFIG_INVALID')
    expect(refused(() => app.source('other', source, { path: '/in/github' }))).toBe('CONFIG_INVALID')
    expect((await app.fetch(githubHook('{}', { url: 'http://hooks.test/hooks/ä' }))).status).toBe(202)
    await app.start()
    expect(refused(() => app.source('late', source))).toBe('CONFIG_INVALID')
  })
})
