// `LocalApiClient` calls the same routes on an app in this process. It needs no key: it can open the store anyway.
import { userInfo } from 'node:os'
import { Api } from '../api/api.ts'
import { systemClock } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { Keys, LOOPBACK_ACTOR, type ApiKey } from '../admin/keys.ts'
import type { Sluice } from '../app/sluice.ts'
import { parseRetryAfter, type ApiResult, type ApiCall, type ApiClient, type ApiProblem } from './api-client.ts'

const HEADERS = { host: 'localhost', authorization: 'Bearer own', 'content-type': 'application/json' } as const

export class LocalApiClient implements ApiClient {
  readonly kind = 'own'
  readonly location: string
  readonly #app: Sluice
  readonly #api: Api

  constructor(app: Sluice, file: string) {
    this.location = `the app of ${file}, in this process`
    this.#app = app
    this.#api = new Api(app, { keys: new LocalUserKeys(), store: rejectStream, clock: systemClock })
  }

  async call({ method, path, query = {}, body = {}, text = JSON.stringify(body) }: ApiCall): Promise<ApiResult> {
    const url = new URL(path, 'http://localhost')
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const head = { method, url, headers: HEADERS, address: '127.0.0.1' }
    const bytes = Buffer.from(text)
    const answer = await this.#api.handle(head, { isDirect: true }, async () => bytes)
    const value = JSON.parse(answer.body ?? 'null') as unknown
    if (answer.status < 300) return { kind: 'done', value }
    return { kind: 'problem', problem: value as ApiProblem, ...parseRetryAfter(answer.headers?.['retry-after']) }
  }

  async close(): Promise<void> {
    await this.#app.stop()
  }
}

/** The audit log names the user of the operating system. */
class LocalUserKeys extends Keys {
  constructor() {
    super(rejectStream)
  }

  override async authenticate(): Promise<ApiKey> {
    return { id: '', name: userName(), role: 'operate', created: 0, by: '' }
  }
}

function rejectStream(): Promise<never> {
  const fix = 'Start it with sluice start.'
  return Promise.reject(
    new SluiceError('CONFLICT', 'The app is not started, so there are no changes to follow.', undefined, fix),
  )
}

/** In a container, the user id may have no name. */
function userName(): string {
  try {
    const { username } = userInfo()
    return /^[\w.@-]{1,100}$/.test(username) ? username : LOOPBACK_ACTOR
  } catch {
    return LOOPBACK_ACTOR
  }
}
