// R5: the last refused requests are listed with the reason and the fix, and without secrets.
import { describe, expect, it } from 'vitest'
import type { EventMap } from '../../src/index.ts'
import { RefusedRequests } from '../../src/receive/refused-requests.ts'
import { apiKey } from '../../src/sources/credentials.ts'
import { basic } from '../../src/sources/credentials.ts'
import { notion } from '../../src/sources/notion.ts'
import { notionAction } from '../../src/sources/notion-action.ts'
import { eventsIn, githubHook, KEY, NOW, opened, SECRET, textOf, withGithub } from './scene.ts'

function post(name: string, headers: Readonly<Record<string, string>>, query = ''): Request {
  return new Request(`http://hooks.test/in/${name}${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{"object":"page","id":"p1"}',
  })
}

describe('a refused request', () => {
  it('is kept with its reason, fix, headers and the beginning of its body', async () => {
    const { app } = await opened(withGithub)
    const told: EventMap['event.refused'][] = []
    app.on('event.refused', (what) => void told.push(what))
    const body = JSON.stringify({ text: 'é'.repeat(400) })
    await app.fetch(githubHook(body, { secret: 'another one' }), { address: '192.0.2.1' })
    const [kept] = await app.admin.sources.refused('github')
    expect(kept).toMatchObject({
      at: NOW,
      source: 'github',
      code: 'SIGNATURE_WRONG',
      method: 'POST',
      path: '/in/github',
      address: '192.0.2.1',
      bytes: Buffer.byteLength(body),
    })
    expect(kept?.fix).toContain('secret')
    expect(kept?.headers['x-hub-signature-256']).toMatch(/^sha256=/)
    expect(body.startsWith(kept?.excerpt.slice(0, 200) ?? 'none')).toBe(true)
    expect(Buffer.byteLength(kept?.excerpt ?? '')).toBeLessThanOrEqual(502)
    expect(told).toEqual([
      { event: kept?.request, source: 'github', type: '', field: 'SIGNATURE_WRONG', fix: kept?.fix },
    ])
  })

  it('is one of the last 50 of its source, newest first; all unknown sources share one list', async () => {
    const { app } = await opened(withGithub, { addressRate: { rate: Infinity, per: '1m' } })
    for (let n = 0; n < 60; n++) {
      await app.fetch(githubHook(`{"n":${n}}`, { secret: 'wrong' }))
      await app.fetch(new Request(`http://hooks.test/in/made-up-${n}`))
    }
    const kept = (await app.admin.sources.refused('github')).map(({ excerpt }) => excerpt)
    expect(kept).toEqual(Array.from({ length: 50 }, (_, n) => `{"n":${59 - n}}`))
    expect(await app.admin.sources.refused('')).toHaveLength(50)
    expect((await app.admin.sources.refused(''))[0]).toMatchObject({ code: 'SOURCE_UNKNOWN', path: '/in/made-up-59' })
    expect(await app.admin.sources.refused('made-up-59')).toEqual([])
  })

  it('is counted by reason, for longer than it is kept', () => {
    const refused = new RefusedRequests()
    const one = {
      at: 0,
      request: '',
      source: 's',
      what: '',
      fix: '',
      method: '',
      path: '',
      address: '',
      headers: {},
      bytes: 0,
      excerpt: '',
    }
    for (let n = 0; n < 70; n++) refused.add({ ...one, code: n < 60 ? 'SIGNATURE_WRONG' : 'BODY_TOO_LARGE' })
    expect(refused.counts('s')).toEqual({ SIGNATURE_WRONG: 60, BODY_TOO_LARGE: 10 })
    expect(refused.counts('t')).toEqual({})
  })

  it('contains no secret, whatever the name of its header', async () => {
    const { app } = await opened((one) =>
      one
        .source('plain', basic({ username: 'ada', secret: SECRET }))
        .source('key', apiKey({ secret: SECRET, header: 'x-hook' }))
        .source('query', apiKey({ secret: SECRET, query: 'k' }))
        .source('action', notionAction({ header: 'x-anything', secret: SECRET })),
    )
    const old = 'the old secret, which others still take'
    await app.fetch(post('plain', { authorization: `Basic ${btoa(`ada:${old}`)}`, cookie: old }))
    await app.fetch(post('key', { 'x-hook': old, 'x-api-key': old, 'my-token': old }))
    await app.fetch(post('query', {}, `?k=${encodeURIComponent(old)}`))
    await app.fetch(post('action', { 'x-anything': old }))
    const kept = (
      await Promise.all(['plain', 'key', 'query', 'action'].map((name) => app.admin.sources.refused(name)))
    ).flat()
    expect(kept.map(({ code }) => code)).toEqual(Array.from({ length: 4 }, () => 'CREDENTIALS_WRONG'))
    expect(JSON.stringify(kept)).not.toMatch(new RegExp(`${old}|${encodeURIComponent(old)}|${btoa(`ada:${old}`)}`))
    // Only that there was one, and its length.
    expect(kept[1]?.headers['x-hook']).toBe(`(${old.length} characters)`)
    expect(kept[1]?.headers['content-type']).toBe('application/json')
  })

  it('contains no token of a handshake', async () => {
    const { app } = await opened((one) => one.source('notion', notion()), { encryptionKey: KEY })
    const shake = (token: string): Promise<Response> =>
      app.fetch(
        new Request('http://hooks.test/in/notion', { method: 'POST', body: `{"verification_token":"${token}"}` }),
      )
    await shake('secret_first')
    await shake('secret_second')
    expect(await app.admin.sources.refused('notion')).toMatchObject([
      { code: 'HANDSHAKE_REFUSED', excerpt: '', bytes: 38 },
    ])
    expect(JSON.stringify(await app.admin.sources.refused('notion'))).not.toContain('secret_')
  })
})

describe('an accepted request', () => {
  it('is kept for audit without the secret that it contained', async () => {
    const { app, store } = await opened((one) =>
      one
        .source('key', apiKey({ secret: SECRET, header: 'x-hook' }))
        .source('query', apiKey({ secret: SECRET, query: 'k' }))
        .source('action', notionAction({ header: 'x-anything', secret: SECRET })),
    )
    const secret = encodeURIComponent(SECRET)
    const answers = [
      await app.fetch(post('key', { 'x-hook': SECRET }, '?page=1&page=%2F')),
      await app.fetch(post('query', {}, `?k=${secret}&page=2&page=3`)),
      await app.fetch(post('action', { 'x-anything': SECRET })),
    ]
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 200])
    const kept = (await eventsIn(store)).map(({ request }) => textOf(request))
    const hidden = `(${SECRET.length} characters)`
    expect(kept).toHaveLength(3)
    expect(kept.join()).not.toContain(SECRET)
    expect(kept.join()).not.toContain(secret)
    expect(JSON.parse(kept[0] ?? '')).toMatchObject({ url: '/in/key?page=1&page=%2F', headers: { 'x-hook': hidden } })
    expect(JSON.parse(kept[1] ?? '')).toMatchObject({ url: '/in/query?k=&page=2&page=3' })
    expect(JSON.parse(kept[2] ?? '')).toMatchObject({ at: NOW, method: 'POST', headers: { 'x-anything': hidden } })
  })
})
