// For every case of every source: a genuine request with random changes, and forms with very many fields.
import { readdirSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import type { ReceivedRequest } from '../../src/receive/source.ts'
import { bytesOf, KEY, NOW, opened } from '../receive/scene.ts'
import type { SourceCase } from '../sources/faults.ts'
import { mutations } from '../sources/mutations.ts'

const TIMES = 500
const SEED = 20_261_115
const FIELDS = Array.from({ length: 100_000 }, (_, n) => `a${n}=`).join('&')

const folder = new URL('../sources/cases/', import.meta.url)
const cases = (
  await Promise.all(
    readdirSync(folder).map(async (name) => (await import(new URL(name, folder).href)) as { cases: SourceCase[] }),
  )
).flatMap((file) => file.cases)

/** The request as it arrives: a GET has no body, and values that a header cannot contain are not sent. */
function onItsWay(request: ReceivedRequest): ReceivedRequest | undefined {
  const isBare = request.method === 'GET' || request.method === 'HEAD'
  try {
    const headers = Object.fromEntries(new Headers({ ...request.headers }))
    return { ...request, headers, body: isBare ? new Uint8Array() : request.body }
  } catch {
    return undefined
  }
}

function send(app: Sluice, { url, method, headers, body, address }: ReceivedRequest): Promise<Response> {
  const isBare = method === 'GET' || method === 'HEAD'
  return app.fetch(new Request(url, { method, headers, body: isBare ? null : bytesOf(body) }), { address })
}

describe.each(cases)('$name', (one) => {
  const genuine = one.request(one.secret, NOW)

  async function declared(): Promise<Sluice> {
    const path = genuine.url.pathname
    const { app } = await opened((made) => made.source('source', one.build(one.secret), { path }), {
      encryptionKey: KEY,
      addressRate: { rate: Infinity, per: '1m' },
    })
    return app
  }

  it(`${TIMES} changed requests cause no 5xx, and nothing forged is stored`, async () => {
    const app = await declared()
    let taken = 0
    app.on('event.received', () => void taken++)
    const isForged = one.isForged ?? ((request) => !Buffer.from(request.body).equals(genuine.body))
    const check = fc.asyncProperty(mutations(genuine), async (changed) => {
      const request = onItsWay(changed)
      if (request === undefined) return
      const before = taken
      expect((await send(app, request)).status).toBeLessThan(500)
      expect(taken > before && isForged(request, genuine)).toBe(false)
    })
    await fc.assert(check, { numRuns: TIMES, seed: SEED })
  })

  it('a form with 100,000 fields gets a response', async () => {
    const app = await declared()
    const headers = { ...genuine.headers, 'content-type': 'application/x-www-form-urlencoded' }
    const { status } = await send(app, { ...genuine, method: 'POST', headers, body: Buffer.from(FIELDS) })
    // The data of a CloudEvent may be any bytes.
    expect([202, 400, 401]).toContain(status)
  })
})
