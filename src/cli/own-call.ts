// The app itself, asked in this process by the same routes. Whoever can open its store needs no key to it.
import { userInfo } from 'node:os'
import { LOOPBACK } from '../api/access.ts'
import { Api } from '../api/api.ts'
import { systemClock } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { Keys, type Key } from '../operate/keys.ts'
import type { Sluice } from '../sluice.ts'
import { laterBy, type Answer, type Call, type Caller, type Problem } from './caller.ts'

const HEADERS = { host: 'localhost', authorization: 'Bearer own', 'content-type': 'application/json' } as const

export class OwnCaller implements Caller {
  readonly kind = 'own'
  readonly where: string
  readonly #app: Sluice
  readonly #api: Api

  constructor(app: Sluice, file: string) {
    this.where = `the app of ${file}, in this process`
    this.#app = app
    this.#api = new Api(app, { keys: new KeyOfThisUser(), store: noStream, clock: systemClock })
  }

  async call({ method, path, query = {}, body = {} }: Call): Promise<Answer> {
    const url = new URL(path, 'http://localhost')
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const head = { method, url, headers: HEADERS, address: '127.0.0.1' }
    const bytes = Buffer.from(JSON.stringify(body))
    const answer = await this.#api.answer(head, { isDirect: true }, async () => bytes)
    const value = JSON.parse(answer.body ?? 'null') as unknown
    if (answer.status < 300) return { kind: 'done', value }
    return { kind: 'problem', problem: value as Problem, ...laterBy(answer.headers?.['retry-after']) }
  }

  async close(): Promise<void> {
    await this.#app.stop()
  }
}

/** The audit log names who did it. */
class KeyOfThisUser extends Keys {
  constructor() {
    super(noStream)
  }

  override async find(): Promise<Key> {
    return { id: '', name: userName(), role: 'operate', made: 0, by: '' }
  }
}

function noStream(): Promise<never> {
  return Promise.reject(new SluiceError('NOT_POSSIBLE', 'Nothing happens in an app that is not started.'))
}

/** A container may run as somebody that no list of users has. */
function userName(): string {
  try {
    const { username } = userInfo()
    return /^[\w.@-]{1,100}$/.test(username) ? username : LOOPBACK
  } catch {
    return LOOPBACK
  }
}
