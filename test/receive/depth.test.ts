// R4: the data of an event has a bounded depth of JSON, so that code can recurse into it. The bytes are always available.
import { describe, expect, it } from 'vitest'
import { parseData } from '../../src/model/event.ts'
import { cloudEvents, unverified } from '../../src/sources/index.ts'
import { opened } from './scene.ts'

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const DEEP = nested(100_000)

describe('data', () => {
  it('is parsed up to a depth of 64, not counting brackets in strings, and undefined beyond', () => {
    expect(JSON.stringify(parseData(Buffer.from(nested(64))))).toBe(nested(64))
    expect(parseData(Buffer.from(nested(65)))).toBeUndefined()
    expect(parseData(Buffer.from(DEEP))).toBeUndefined()
    const text = { text: `"${DEEP}\\` }
    expect(parseData(Buffer.from(JSON.stringify(text)))).toEqual(text)
  })

  it('with a greater depth is rejected by publish, because no handler could read it', async () => {
    const { app } = await opened(() => {})
    const publish = (depth: number): Promise<unknown> =>
      app.publish({ type: 'deep', data: JSON.parse(nested(depth)) as unknown })
    await expect(publish(64)).resolves.toBeDefined()
    await expect(publish(65)).rejects.toMatchObject({ code: 'EVENT_INVALID' })
    await expect(app.publish({ type: 'deep', body: DEEP })).resolves.toBeDefined()
  })

  it('of a request that was not parsed as JSON reaches flows only as text', async () => {
    const seen: unknown[] = []
    const { app } = await opened((one) =>
      one
        .source('open', unverified({ verify: 'none' }))
        .source('ce', cloudEvents({ verify: 'none' }))
        .flow('all', {
          on: '**',
          key: (event) => (seen.push(event.data, event.text.length), 'one'),
          run: () => {},
        }),
    )
    const post = (path: string, headers: Record<string, string>): Promise<Response> =>
      app.fetch(new Request(`http://hooks.test/in/${path}`, { method: 'POST', headers, body: DEEP }))
    const event = { 'ce-id': '1', 'ce-source': '/', 'ce-type': 't', 'ce-specversion': '1.0' }
    expect((await post('open', { 'content-type': 'text/plain' })).status).toBe(202)
    expect((await post('ce', { 'content-type': 'application/json', ...event })).status).toBe(202)
    expect(seen).toEqual([undefined, 200_000, undefined, 200_000])
  })
})
