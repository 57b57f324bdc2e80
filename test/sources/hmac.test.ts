// Tests generic HMAC: its options can do what other sources have built in, and invalid options are rejected.
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Millis } from '../../src/clock.ts'
import type { ReceivedRequest } from '../../src/receive/source.ts'
import { hmac, type HmacOptions } from '../../src/sources/hmac.ts'
import { cases as githubCases } from './cases/github.ts'
import { cases } from './cases/hmac.ts'
import { cases as slackCases } from './cases/slack.ts'
import { NOW as START, opened } from '../receive/scene.ts'
import { NOW, receive, requestOf } from './faults.ts'

const SECRET = 'correct horse'

function outcomeOf(options: Omit<HmacOptions, 'secret'>, request: ReceivedRequest, secret = SECRET): string {
  return receive(hmac({ secret, ...options }), request, '').outcome
}

function signed(content: string, headers: Readonly<Record<string, string>> = {}, body = '{}'): ReceivedRequest {
  const mac = createHmac('sha256', SECRET).update(content).digest('hex')
  return requestOf({ body, url: 'https://hooks.example.com/in/a?b=c', headers: { 'x-signature': mac, ...headers } })
}

test('options can describe GitHub and Slack', () => {
  const [github, slack] = [githubCases[0], slackCases[0]]
  if (github === undefined || slack === undefined) throw new Error('There are no cases.')
  const asGithub = { header: 'X-Hub-Signature-256', prefix: 'sha256=', type: 'header:X-GitHub-Event' }
  expect(outcomeOf(asGithub, github.request(github.secret, NOW), github.secret)).toBe('accepted')
  const asSlack = {
    header: 'x-slack-signature',
    prefix: 'v0=',
    timestamp: 'x-slack-request-timestamp',
    signed: 'v0:{timestamp}:{body}',
    type: 'event.type',
  }
  expect(outcomeOf(asSlack, slack.request(slack.secret, NOW), slack.secret)).toBe('accepted')
})

function throwing(): never {
  throw new Error('oh')
}

test('the signed content can be a pattern or a function', () => {
  const header = 'x-signature'
  expect(outcomeOf({ header, signed: '{url}|{body}' }, signed('https://hooks.example.com/in/a?b=c|{}'))).toBe(
    'accepted',
  )
  expect(outcomeOf({ header, signed: '{path}|{body}' }, signed('/in/a?b=c|{}'))).toBe('accepted')
  expect(outcomeOf({ header, signed: ({ body }) => ['v1:', body] }, signed('v1:{}'))).toBe('accepted')
  expect(outcomeOf({ header, signed: ({ url }) => url.host }, signed('hooks.example.com'))).toBe('accepted')
  expect(outcomeOf({ header, signed: throwing }, signed('{}'))).toBe('SIGNATURE_WRONG')
})

function at(time: string): ReceivedRequest {
  return signed(`${time}.{}`, { 'x-time': time })
}

test('the timestamp may be in seconds or in milliseconds, and must be valid', () => {
  const options = { header: 'x-signature', timestamp: 'x-time' }
  expect(outcomeOf(options, at(String(NOW)))).toBe('accepted')
  expect(outcomeOf(options, at(String(NOW / 1_000)))).toBe('accepted')
  expect(outcomeOf(options, at('yesterday'))).toBe('TIMESTAMP_MISSING')
  expect(outcomeOf(options, at(''))).toBe('TIMESTAMP_MISSING')
  expect(outcomeOf({ ...options, tolerance: '1s' }, at(String(NOW - 2_000)))).toBe('TIMESTAMP_OLD')
})

test('hex may be in capitals, and a prefix is mandatory', () => {
  const request = signed('{}')
  const capitals = { ...request, headers: { 'x-signature': request.headers['x-signature']?.toUpperCase() ?? '' } }
  expect(outcomeOf({ header: 'x-signature' }, capitals)).toBe('accepted')
  expect(outcomeOf({ header: 'x-signature', prefix: 'sha256=' }, request)).toBe('SIGNATURE_WRONG')
})

function sent(body: string, time: Millis, spelled = (mac: string): string => mac): ReceivedRequest {
  const mac = createHmac('sha256', SECRET).update(`${time}.${body}`).digest('hex')
  return requestOf({ body, headers: { 'x-signature': `v1=${spelled(mac)}`, 'x-time': String(time) } })
}

describe('without an id', () => {
  const timed = { header: 'x-signature', timestamp: 'x-time', prefix: 'v1=' } as const
  const idOf = (request: ReceivedRequest, options: Partial<HmacOptions> = {}): string | undefined => {
    const { outcome, events } = receive(hmac({ secret: SECRET, ...timed, ...options }), request, '')
    expect(outcome).toBe('accepted')
    return events?.[0]?.dedupeId
  }

  test('the same request is recognised by its signature if the timestamp is signed, in any spelling', () => {
    const [one, again] = [sent('{}', NOW), sent('{}', NOW, (mac) => mac.toUpperCase())]
    expect(idOf(one)).toBe(one.headers['x-signature']?.slice('v1='.length))
    expect(idOf(again)).toBe(idOf(one))
    const others = [sent('{}', NOW - 1_000), sent('{"a":1}', NOW)].map((request) => idOf(request))
    expect(new Set([idOf(one), ...others]).size).toBe(3)
  })

  test('an app stores it once, and reports a duplicate', async () => {
    const { app } = await opened((one) => one.source('shop', hmac({ secret: SECRET, ...timed })))
    const { headers, body } = sent('{}', START)
    const init = { method: 'POST', headers, body: Uint8Array.from(body) }
    const kinds: unknown[] = []
    for (let n = 0; n < 2; n++) {
      const response = await app.fetch(new Request('http://hooks.test/in/shop', init))
      kinds.push(((await response.json()) as { events: readonly { kind: string }[] }).events[0]?.kind)
    }
    expect(kinds).toEqual(['stored', 'duplicate'])
  })

  test('nothing is recognised if no timestamp is signed, or if the option says so', () => {
    const bare = receive(hmac({ secret: SECRET, header: 'x-signature' }), signed('{}'), '')
    expect(bare.events).toMatchObject([{ dedupeId: undefined }])
    expect(idOf(sent('{}', NOW), { id: () => undefined })).toBeUndefined()
    expect(idOf(sent('{"n":7}', NOW), { id: 'n' })).toBe('7')
  })
})

test('an identity is kept longer if no timestamp is signed', () => {
  expect(cases.map((one) => one.build(one.secret).dedupeFor)).toEqual(['30d', '7d'])
})

describe('invalid options', () => {
  test.each<readonly [string, object]>([
    ['no header', {}],
    ['an unknown algorithm', { header: 'x', algorithm: 'md5' }],
    ['an unknown encoding', { header: 'x', encoding: 'latin1' }],
    ['a pattern without the body', { header: 'x', signed: '{url}' }],
    ['a time that is not signed', { header: 'x', timestamp: 'y', signed: '{body}' }],
    ['a pattern with a time that is nowhere', { header: 'x', signed: '{timestamp}.{body}' }],
    ['an unknown part', { header: 'x', signed: '{body}{query}' }],
    ['an empty name of a header', { header: 'x', signed: '{body}{header:}' }],
    ['a tolerance of no time', { header: 'x', tolerance: '5m' }],
    ['an unknown option', { header: 'x', algorithmus: 'sha256' }],
    ['a path with an empty step', { header: 'x', type: 'a..b' }],
  ])('%s', (_, options) => {
    expect(() => hmac({ secret: SECRET, ...options } as HmacOptions)).toThrow(/^CONFIG_INVALID: hmac: /)
  })
})
