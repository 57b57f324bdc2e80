// Error texts of the store (its address, its file, a statement) are for operators. Other callers only learn that the store does
// not respond.
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Sluice, SluiceError, type EventMap } from '../../src/index.ts'
import { freePort } from '../free-port.ts'
import { ownFolder } from '../temporary-folder.ts'
import { seeded } from './seeded.ts'

const PATHS = ['/v1/keys', '/v1/flows', '/v1/events', '/metrics', '/openapi.json', '/v1/stream']

interface Failing {
  readonly app: Sluice
  readonly failed: EventMap['api.failed'][]
}

function failing(store: string): Failing {
  const app = new Sluice({ store, log: false })
  onTestFinished(() => app.stop())
  const failed: EventMap['api.failed'][] = []
  app.on('api.failed', (what) => void failed.push(what))
  return { app, failed }
}

/** A well-formed but unknown key, because a call without a key does not reach the store. */
const UNKNOWN = `slk_0123456789ab_${'x'.repeat(43)}`

async function answered(app: Sluice, path: string, key = UNKNOWN): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}` }
  const response = await app.fetch(new Request(`http://x${path}`, { headers }))
  const { code, detail } = (await response.json()) as { code: string; detail: string }
  return { status: response.status, code, detail }
}

const DETAIL = 'The store is unavailable right now.'

describe('a caller whose key cannot be looked up', () => {
  test('does not see the address of a server that does not respond', async () => {
    const address = `127.0.0.1:${await freePort()}`
    const { app, failed } = failing(`postgres://ada:secret@${address}/shop`)
    for (const path of PATHS) {
      expect(await answered(app, path)).toEqual({ status: 503, code: 'STORE_UNREACHABLE', detail: DETAIL })
      expect(failed.at(-1)).toMatchObject({ method: 'GET', path, error: expect.stringContaining(address) as string })
    }
  })

  test('does not see the file that cannot be opened', async () => {
    const file = join(ownFolder(), 'missing', 'a.db')
    const { app, failed } = failing(`sqlite:${file}`)
    expect(await answered(app, '/v1/keys')).toEqual({ status: 500, code: 'STORE_UNWRITABLE', detail: DETAIL })
    expect(failed).toMatchObject([{ path: '/v1/keys', error: expect.stringContaining(file) as string }])
  })
})

describe('the error text of a store that fails during a call', () => {
  const error = new SluiceError('STORE_FAILED', 'relation "lanes" on db.internal is locked')

  test('is shown to an operator', async () => {
    const r = await seeded('memory:')
    vi.spyOn(r.app.admin.events, 'list').mockRejectedValueOnce(error)
    const { status, body } = await r.get('/v1/events', { key: r.operate })
    expect([status, (body as { detail: string }).detail]).toEqual([503, 'relation "lanes" on db.internal is locked'])
  })

  test('is not shown to the token of a subscriber', async () => {
    const r = await seeded('memory:')
    const [mine] = await r.app.endpoints.list()
    const path = `/v1/webhooks/subscribers/${mine?.id}`
    const { token } = (await r.post(`${path}/token`, {}, { key: r.operate })).body as { token: string }
    vi.spyOn(r.app.endpoints, 'deliveries').mockRejectedValueOnce(error)
    const { status, body } = await r.get(`${path}/deliveries`, { key: token })
    expect([status, (body as { detail: string }).detail]).toEqual([503, DETAIL])
  })
})
