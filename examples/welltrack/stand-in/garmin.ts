// `GarminStandIn` pushes items as Garmin does: many people in one body, the same items again if the answer is late or not 200, and the
// past of a person when a backfill asks for it.
import type { Clock, Millis } from 'sluice'
import type { Send } from '../../kit/hosts.ts'
import { dailies, garminActivity, sleep, stress, userMetrics } from './payloads.ts'

export const CLIENT_ID = 'garmin-client-of-welltrack'
export const CLIENT_SECRET = 'garmin-client-secret'

export interface Item {
  readonly userId: string
  readonly [field: string]: unknown
}

export type PushType =
  | 'sleeps'
  | 'stressDetails'
  | 'userMetrics'
  | 'dailies'
  | 'activities'
  | 'deregistrations'
  | 'userPermissionsChange'

const PATHS: Readonly<Partial<Record<PushType, string>>> = {
  deregistrations: 'deregistration',
  userPermissionsChange: 'user-permission',
}

type Summary = (day: number) => Readonly<Record<string, unknown>>

const SUMMARIES: ReadonlyMap<string, Summary> = new Map(
  Object.entries({ sleeps: sleep, stressDetails: stress, userMetrics, dailies, activities: garminActivity }),
)

const DAY = 86_400
const FIRST_DAY = Date.UTC(2026, 10, 18) / 1_000

export interface BackfillRequest {
  readonly type: string
  readonly from: number
  readonly to: number
  readonly status: number
}

export class GarminStandIn {
  readonly statuses: number[] = []
  /** How long each answer took. */
  readonly latencies: Millis[] = []
  readonly backfills: BackfillRequest[] = []
  /** Pushes that were sent again. */
  repeated = 0
  /** The next answers to pushes seem to take so long, so that Garmin sends again. */
  slow = 0
  /** The next answers to requests for a backfill. */
  readonly refusals: number[] = []
  refreshes = 0
  /** The activities of the past are pushed once it resolves. */
  held: Promise<void> | undefined
  readonly #people = new Map<string, { access: string; refresh: string; expiresAt: Millis }>()
  readonly #clock: Clock
  readonly #late: Millis
  #send: Send | undefined

  /** `late` is when Garmin gives up to wait for an answer. */
  constructor(clock: Clock, late: Millis) {
    this.#clock = clock
    this.#late = late
  }

  /** Where backfilled data is pushed. */
  pushTo(send: Send): void {
    this.#send = send
  }

  /** Returns the status of the last answer. */
  async push(send: Send, type: PushType, items: readonly Item[]): Promise<number> {
    return this.post(send, PATHS[type] ?? type, JSON.stringify({ [type]: items }))
  }

  async post(send: Send, path: string, body: string): Promise<number> {
    const headers = { 'content-type': 'application/json', 'garmin-client-id': CLIENT_ID }
    for (;;) {
      const began = this.#clock.monotonic()
      // Whoever does not answer gets the push again.
      const status = await exchange(send, `/webhooks/garmin/${path}`, { method: 'POST', headers, body })
      this.latencies.push(this.#clock.monotonic() - began)
      this.statuses.push(status)
      const isLate = this.slow > 0
      if (isLate) this.slow--
      if (status !== 200 && status !== 503 && status !== 0) return status
      if (!isLate && status === 200) return 200
      this.repeated++
      await new Promise<void>((resolve) => void this.#clock.after(this.#late, resolve))
    }
  }

  /** Returns the tokens that a person gets who connects. `expired` ones have to be refreshed at once. */
  connect(userId: string, { expired = false } = {}): { access: string; refresh: string; expiresAt: Millis } {
    const expiresAt = this.#clock.now() + (expired ? -1 : DAY) * 1_000
    const tokens = { access: `token-0-of-${userId}`, refresh: `refresh-0-of-${userId}`, expiresAt }
    this.#people.set(userId, { ...tokens })
    return tokens
  }

  revoke(userId: string): void {
    this.#people.delete(userId)
  }

  /** `GET /wellness-api/rest/backfill/<type>`, whose data comes later, by push; and the token endpoint. */
  readonly handle = async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url)
    if (request.method === 'POST' && pathname === '/di-oauth2-service/oauth/token')
      return this.#token(new URLSearchParams(await request.text()))
    const type = /^\/wellness-api\/rest\/backfill\/(\w+)$/.exec(pathname)?.[1] ?? ''
    const summary = SUMMARIES.get(type)
    if (summary === undefined) return new Response('', { status: 404 })
    const token = request.headers.get('authorization')?.replace(/^Bearer /, '')
    const [userId] = [...this.#people].find(([, { access }]) => access === token) ?? []
    const isValid = userId !== undefined && (this.#people.get(userId)?.expiresAt ?? 0) > this.#clock.now()
    if (!isValid) return new Response('', { status: 401 })
    const from = Number(searchParams.get('summaryStartTimeInSeconds'))
    const to = Number(searchParams.get('summaryEndTimeInSeconds'))
    const isRepeated = this.backfills.some(
      (one) => one.status === 202 && one.type === type && one.from === from && one.to === to,
    )
    const longest = type === 'activities' ? 30 : 90
    const status = this.refusals.shift() ?? (to - from > longest * DAY ? 400 : isRepeated ? 409 : 202)
    this.backfills.push({ type, from, to, status })
    if (status === 202) this.#clock.after(2_000, () => void this.#pushPast(type as PushType, userId, [from, to]))
    return new Response('', { status })
  }

  #token(form: URLSearchParams): Response {
    const found = [...this.#people].find(([, { refresh }]) => refresh === form.get('refresh_token'))
    if (form.get('client_id') !== CLIENT_ID || form.get('client_secret') !== CLIENT_SECRET)
      return Response.json({ error: 'invalid_client' }, { status: 401 })
    if (found === undefined) return Response.json({ error: 'invalid_grant' }, { status: 400 })
    const [userId, tokens] = found
    const n = ++this.refreshes
    const next = { access: `token-${n}-of-${userId}`, refresh: `refresh-${n}-of-${userId}` }
    Object.assign(tokens, next, { expiresAt: this.#clock.now() + DAY * 1_000 })
    return Response.json({ access_token: next.access, refresh_token: next.refresh, expires_in: DAY })
  }

  async #pushPast(type: PushType, userId: string, [from, to]: readonly [number, number]): Promise<void> {
    if (this.#send === undefined) return
    if (type === 'activities') await this.held
    const [first, last] = [from, to].map((time) => Math.floor((time - FIRST_DAY) / DAY))
    const items: Item[] = []
    for (let day = (first ?? 0) + 1; day <= (last ?? 0); day++) items.push({ userId, ...SUMMARIES.get(type)?.(day) })
    await this.push(this.#send, type, items)
  }
}

/** Returns the status, or 0 if there was no answer. */
async function exchange(send: Send, path: string, init: RequestInit): Promise<number> {
  try {
    const response = await send(path, init)
    await response.text()
    return response.status
  } catch {
    return 0
  }
}
