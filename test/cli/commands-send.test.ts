// Tests `sluice send` for every preset: the real source accepts what it signs with the declared secret, and rejects another secret.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folderWith, run, serve } from './commands-rig.ts'

const SRC = new URL('../../src/', import.meta.url)
const KEY = Buffer.alloc(32, 7).toString('base64')
const WHSEC = `whsec_${Buffer.alloc(24, 9).toString('base64')}`
const WHSEC_OTHER = `whsec_${Buffer.alloc(24, 8).toString('base64')}`

/** By preset: how the source is declared, and the type of the event that arrives. */
const SOURCES = {
  github: ["github({ secret: 's-0123456789' })", 'push'],
  stripe: ["stripe({ secret: 's-0123456789' })", 'customer.created'],
  slack: ["slack({ secret: 's-0123456789' })", 'message'],
  shopify: ["shopify({ secret: 's-0123456789' })", 'orders/create'],
  twilio: ["twilio({ secret: 's-0123456789' })", 'message.received'],
  'twilio-fixed': ["twilio({ secret: 's-0123456789', url: 'https://example.com/hook' })", 'message.received'],
  whatsapp: ["whatsapp({ secret: 's-0123456789', verifyToken: 'v' })", 'message.text'],
  notion: ["notion({ secret: 's-0123456789' })", 'page.content_updated'],
  'notion-action': ["notionAction({ header: 'X-Secret', secret: 's-0123456789' })", 'page.updated'],
  strava: ["strava({ verifyToken: 'v', subscriptionId: 120475, secret: 's-0123456789' })", 'activity.create'],
  'strava-unsigned': ["strava({ verifyToken: 'v', subscriptionId: 120475 })", 'activity.create'],
  garmin: ["garmin({ clientId: 's-0123456789' })", 'activities'],
  standard: [`standardWebhooks({ secret: '${WHSEC}' })`, 'test'],
  'cloud-events': ["cloudEvents({ token: 's-0123456789' })", 'test'],
  'cloud-events-hmac': ["cloudEvents({ verify: hmac({ secret: 's-0123456789', header: 'x-mac' }) })", 'test'],
  hmac: ["hmac({ secret: 's-0123456789', header: 'X-Signature', prefix: 'v1=', type: 'kind' })", 'test'],
  'hmac-timed': [
    `hmac({ secret: 's-0123456789', header: 'x-mac', algorithm: 'sha512', encoding: 'base64', timestamp: 'x-at',
       signed: '{method}:{timestamp}:{path}:{body}', type: 'header:x-type' })`,
    'test',
  ],
  basic: ["basic({ username: 'ada', secret: 's-0123456789' })", 'test'],
  bearer: ["bearer({ secret: 's-0123456789', type: 'event.name' })", 'test'],
  'api-key': ["apiKey({ secret: 's-0123456789' })", 'test'],
  'api-key-query': ["apiKey({ secret: 's-0123456789', query: 'k' })", 'test'],
  open: ["unverified({ verify: 'none' })", 'test'],
} as const

const CONFIG = `
import { Sluice } from '${new URL('index.ts', SRC).href}'
import * as sources from '${new URL('sources/index.ts', SRC).href}'
const { apiKey, basic, bearer, cloudEvents, garmin, github, hmac, notion, notionAction, shopify, slack, standardWebhooks,
  strava, stripe, twilio, unverified, whatsapp } = sources
const app = new Sluice({ store: 'sqlite:app.db', log: false, admin: { open: 'loopback' }, encryptionKey: '${KEY}' })
${Object.entries(SOURCES)
  .map(([name, [declared]]) => `app.source('${name}', ${declared})`)
  .join('\n')}
app.source('pages', notion(), { path: '/hooks/pages' })
export default app
`

interface Item {
  readonly source: string
  readonly type: string
}

describe('sluice send', () => {
  it('is accepted by each source as the intended event, and rejected with another secret', async () => {
    const folder = folderWith({ 'sluice.config.ts': CONFIG })
    const server = await serve(folder)
    const names = Object.keys(SOURCES)
    // Two at a time, as many as the smallest machine has cores.
    for (let at = 0; at < names.length; at += 2) {
      const sent = names.slice(at, at + 2).map(async (name) => {
        const { code, stdout, stderr } = await server.sluice('send', name)
        expect([name, code, stdout + stderr]).toEqual([name, 0, expect.stringMatching(/^20[02] stored [\w:-]+\n/)])
      })
      await Promise.all(sent)
    }
    const { items } = (await server.sluice('events', '--json')).json as { readonly items: readonly Item[] }
    const got = Object.fromEntries(items.map(({ source, type }) => [source, type]))
    expect(got).toEqual(Object.fromEntries(Object.entries(SOURCES).map(([name, [, type]]) => [name, type])))
    for (const name of ['github', 'standard', 'basic']) {
      const { code, stdout } = await server.sluice(
        'send',
        name,
        `--secret=${name === 'standard' ? WHSEC_OTHER : 'wrong'}`,
      )
      expect([name, code, stdout]).toEqual([
        name,
        4,
        expect.stringMatching(/^40[13] (SIGNATURE|CREDENTIALS)_WRONG: .* sluice sources refused shows the fix\.$/m),
      ])
    }
  }, 60_000)

  it('sends other types and bodies, and many events that are no duplicates of each other', async () => {
    const folder = folderWith({ 'sluice.config.ts': CONFIG })
    writeFileSync(join(folder, 'body.json'), '{"type":"from-file"}')
    const server = await serve(folder)
    await server.sluice('send', 'github', '--type=pull_request.opened')
    await server.sluice('send', 'standard', '--data=body.json')
    await server.sluice('send', 'basic', '--data={"type":"typed"}')
    await run(folder, ['send', 'bearer', '--data=-'], {
      env: { SLUICE_URL: server.url },
      input: '{"event":{"name":"piped"}}',
    })
    await server.sluice('send', 'twilio', '--data={"EventType":"onMessageAdded"}')
    const many = await server.sluice('send', 'strava', '--count=25', '--json')
    expect(many.json).toEqual({ 200: 25, events: { stored: 25 }, notes: ['no flow wants this event'] })
    expect(many.stderr).toMatch(/sent {2}100 % {2}25 of 25/)
    const same = await server.sluice(
      'send',
      'stripe',
      '--count=3',
      '--data={"id":"evt_same","type":"a","object":"event"}',
    )
    expect(same.stdout).toContain(
      'stored: 1 event\nduplicate: 2 events\nA duplicate has the id of a stored event. Pass other --data',
    )
    const { items } = (await server.sluice('events', '--json')).json as { readonly items: readonly Item[] }
    const types = items.map(({ source, type }) => `${source}/${type}`)
    for (const type of [
      'github/pull_request.opened',
      'standard/from-file',
      'basic/typed',
      'bearer/piped',
      'twilio/onMessageAdded',
    ]) {
      expect(types).toContain(type)
    }
    expect(types.filter((type) => type === 'strava/activity.create')).toHaveLength(25)
  })

  it("says what is missing: a server, a source, or a secret that only the provider's handshake will bring", async () => {
    const folder = folderWith({ 'sluice.config.ts': CONFIG })
    const server = await serve(folder)
    expect(await run(folder, ['send', 'github'])).toMatchObject({ code: 5 })
    const unknown = await server.sluice('send', 'gitlab')
    expect([unknown.code, unknown.stderr]).toEqual([3, expect.stringContaining('Use one of these: github, stripe')])
    expect(await server.sluice('send', 'github', '--count=none')).toMatchObject({ code: 2 })
    const pending = await server.sluice('send', 'pages')
    expect([pending.code, pending.stderr]).toEqual([1, expect.stringContaining('waits for the handshake')])
    await fetch(`${server.url}/hooks/pages`, { method: 'POST', body: '{"verification_token":"secret_by_handshake"}' })
    expect((await server.sluice('sources', 'secret', 'pages')).stdout).toBe('secret_by_handshake\n')
    expect((await server.sluice('send', 'pages')).stdout).toMatch(/^200/)
    expect((await server.sluice('audit')).stdout).toMatch(/loopback .*secret of source pages/)
    expect((await server.sluice('sources', 'forget', 'pages', '--yes')).code).toBe(0)
    expect((await server.sluice('send', 'pages', '--secret=secret_by_handshake')).code).toBe(4)
    expect((await server.sluice('sources', 'refused', 'pages')).stdout).toContain('SOURCE_PENDING')
  })
})
