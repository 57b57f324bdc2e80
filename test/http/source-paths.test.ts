// A source whose path ends in `/*` takes requests to all paths below it, or to those that it names.
import { describe, expect, it } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { garmin } from '../../src/sources/garmin.ts'
import { github } from '../../src/sources/github.ts'
import { githubHeaders, problemOf, SECRET } from '../receive/scene.ts'
import { listening } from './rig.ts'

const SUFFIXES = ['sleeps', 'dailies', 'user/permission']

function withPaths(app: Sluice): void {
  app
    .source('garmin', garmin({ clientId: 'mine' }), { path: '/webhooks/garmin/*', suffixes: SUFFIXES })
    .source('any', github({ secret: SECRET }), { path: '/hooks/*' })
    .source('exact', github({ secret: SECRET }), { path: '/hooks/exact' })
    .source('below', github({ secret: SECRET }), { path: '/hooks/below/*' })
    .flow('all', { on: '**', run: () => {} })
}

async function push(url: string, path: string): Promise<number> {
  const body = '{}'
  const headers = githubHeaders(body, { delivery: path })
  return (await fetch(url + path, { method: 'POST', headers, body })).status
}

describe('a source path that ends in /*', () => {
  it('takes requests to the suffixes it names, and rejects others with the list', async () => {
    const { url, app } = await listening({}, withPaths)
    const send = (suffix: string): Promise<Response> =>
      fetch(`${url}/webhooks/garmin/${suffix}`, {
        method: 'POST',
        headers: { 'garmin-client-id': 'mine', 'content-type': 'application/json' },
        body: JSON.stringify({ sleeps: [{ userId: 'u', summaryId: suffix }] }),
      })
    for (const suffix of SUFFIXES) expect((await send(suffix)).status, suffix).toBe(200)
    const unknown = await send('naps')
    expect(unknown.status).toBe(404)
    expect(await problemOf(unknown)).toMatchObject({
      code: 'SOURCE_UNKNOWN',
      detail: 'The source garmin has no path ending in naps; it has sleeps, dailies, user/permission.',
    })
    expect((await send('')).status).toBe(404)
    const events = await app.admin.events.list({ source: 'garmin' })
    expect(events.items.map(({ source, type }) => `${source}/${type}`)).toEqual(SUFFIXES.map(() => 'garmin/sleeps'))
    expect(await app.admin.sources.refused('garmin')).toMatchObject([{ code: 'SOURCE_UNKNOWN' }])
  })

  it('gives way to a longer path, and to one without *', async () => {
    const { url, app } = await listening({}, withPaths)
    for (const path of ['/hooks/a', '/hooks/a/b', '/hooks/exact', '/hooks/exact/a', '/hooks/below/a', '/hooks/below/'])
      expect(await push(url, path), path).toBe(202)
    expect(await push(url, '/hooks')).toBe(404)
    const { items } = await app.admin.events.list({})
    const count = (name: string): number => items.filter(({ source }) => source === name).length
    expect(['any', 'exact', 'below'].map(count)).toEqual([4, 1, 1])
  })

  it.each([
    { path: '/a*' },
    { path: '/*/a' },
    { path: '/a', suffixes: ['b'] },
    { path: '/a/*', suffixes: [] },
    { path: '/a/*', suffixes: ['/b'] },
    { path: '/v1/*' },
  ])('is not declared as %j', (options) => {
    const app = new Sluice({ store: 'memory:', log: false })
    expect(() => app.source('github', github({ secret: SECRET }), options)).toThrow(/CONFIG_INVALID/)
  })
})
