// `StravaStandIn` keeps activities, counts two budgets by the clock as Strava does, and replaces both tokens when one is refreshed.
import type { Clock, Millis } from 'sluice'
import type { Send } from '../../kit/hosts.ts'
import { activity } from './payloads.ts'

export const VERIFY_TOKEN = 'welltrack-verify-token'
export const SUBSCRIPTION_ID = 120_475
export const CLIENT_SECRET = 'strava-client-secret'

const MINUTE: Millis = 60_000
const DAY: Millis = 24 * 60 * MINUTE
const TOKEN_LIFE: Millis = 6 * 60 * MINUTE

export interface Budgets {
  readonly quarterHour: number
  readonly day: number
  /** The length of the short window. */
  readonly window: Millis
  /** The length of the long one (default: a day). */
  readonly dayLength?: Millis
}

interface Athlete {
  access: string
  refresh: string
  expiresAt: Millis
}

export class StravaStandIn {
  readonly activities = new Map<string, Readonly<Record<string, unknown>>>()
  readonly calls: { readonly id: string; readonly athlete: string; readonly at: Millis; readonly status: number }[] = []
  /** Calls beyond a budget. */
  exceeded = 0
  refreshes = 0
  /** Statuses of the next calls. */
  readonly failures: number[] = []
  /** Calls for activities are answered once it resolves. */
  stalled: Promise<void> | undefined
  /** May be replaced, as when somebody resets it in the settings of the app at Strava. */
  clientSecret = CLIENT_SECRET
  readonly budgets: Budgets
  readonly #athletes = new Map<string, Athlete>()
  readonly #used = { quarterHour: { window: 0, n: 0 }, day: { window: 0, n: 0 } }
  readonly #clock: Clock

  constructor(clock: Clock, budgets: Budgets) {
    this.#clock = clock
    this.budgets = budgets
  }

  /** Returns the tokens that a person gets who connects. `expired` ones have to be refreshed at once. */
  connect(athlete: string, { expired = false } = {}): { access: string; refresh: string; expiresAt: Millis } {
    const expiresAt = this.#clock.now() + (expired ? -MINUTE : TOKEN_LIFE)
    const tokens = { access: `access-${athlete}-0`, refresh: `refresh-${athlete}-0`, expiresAt }
    this.#athletes.set(athlete, { ...tokens })
    return tokens
  }

  revoke(athlete: string): void {
    this.#athletes.delete(athlete)
  }

  add(id: string, changes: Readonly<Record<string, unknown>> = {}): void {
    // Each began at another time: two hours before the one that was added before it.
    const began = this.activities.has(id) ? {} : { start_date: this.#nextStart() }
    this.activities.set(id, { ...activity(id), ...this.activities.get(id), ...began, ...changes })
  }

  /** Calls of another program under the same budgets. */
  useElsewhere(n: number): void {
    for (let calls = 0; calls < n; calls++) this.#count()
  }

  /** Another program has used up the day except for `n` calls, in earlier quarters of an hour. */
  leaveOfDay(n: number): void {
    this.#count()
    this.#used.day.n = this.budgets.day - n
  }

  /** The handshake, when a subscription is created. Returns whether the app has passed it. */
  async subscribe(send: Send, token = VERIFY_TOKEN): Promise<boolean> {
    const query = new URLSearchParams({
      'hub.mode': 'subscribe',
      'hub.challenge': '15f7d1a91c1f40f8a748fd134752feb3',
      'hub.verify_token': token,
    })
    const response = await send(`/webhooks/strava?${query.toString()}`)
    const body = (await response.json().catch(() => ({}))) as Readonly<Record<string, unknown>>
    return response.status === 200 && body['hub.challenge'] === query.get('hub.challenge')
  }

  /** Tells the app of a change. `ids` may have more digits than a number. */
  async tell(send: Send, event: Readonly<Record<string, unknown>> & { id: string; athlete: string }): Promise<number> {
    const { id, athlete, ...rest } = event
    const fields = {
      object_type: 'activity',
      aspect_type: 'create',
      updates: {},
      subscription_id: SUBSCRIPTION_ID,
      event_time: Math.floor(this.#clock.now() / 1_000),
      ...rest,
    }
    const body = `{"object_id": ${id}, "owner_id": ${athlete}, ${JSON.stringify(fields).slice(1)}`
    const headers = { 'content-type': 'application/json' }
    const response = await send('/webhooks/strava', { method: 'POST', headers, body })
    await response.text()
    return response.status
  }

  readonly handle = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    if (request.method === 'POST' && pathname === '/oauth/token')
      return this.#token(new URLSearchParams(await request.text()))
    const id = /^\/api\/v3\/activities\/(\d+)$/.exec(pathname)?.[1]
    if (id === undefined) return new Response('', { status: 404 })
    const token = request.headers.get('authorization')?.replace(/^Bearer /, '') ?? ''
    const athlete = /^access-(.+)-\d+$/.exec(token)?.[1] ?? ''
    const isWithin = this.#count()
    await this.stalled
    const status = isWithin ? (this.failures.shift() ?? this.#status(id, athlete, token)) : 429
    this.calls.push({ id, athlete, at: this.#clock.now(), status })
    const headers = this.#headers()
    return status === 200
      ? Response.json(this.activities.get(id), { headers })
      : Response.json({ message: 'As Strava would say' }, { status, headers })
  }

  #nextStart(): string {
    return new Date(Date.UTC(2026, 10, 18, 12) - this.activities.size * 120 * MINUTE).toISOString()
  }

  #status(id: string, athlete: string, token: string): number {
    const known = this.#athletes.get(athlete)
    if (known?.access !== token || known.expiresAt <= this.#clock.now()) return 401
    return this.activities.has(id) ? 200 : 404
  }

  /** Returns whether the call is within both budgets. A call beyond the short one counts for the day as well. */
  #count(): boolean {
    const now = this.#clock.now()
    const { quarterHour, day } = this.#used
    for (const [used, length] of [
      [quarterHour, this.budgets.window],
      [day, this.budgets.dayLength ?? DAY],
    ] as const) {
      const window = Math.floor(now / length)
      if (used.window !== window) Object.assign(used, { window, n: 0 })
      used.n++
    }
    const isWithin = quarterHour.n <= this.budgets.quarterHour && day.n <= this.budgets.day
    if (!isWithin) this.exceeded++
    return isWithin
  }

  #headers(): Readonly<Record<string, string>> {
    const { quarterHour, day } = this.#used
    const [limit, usage] = [`${this.budgets.quarterHour},${this.budgets.day}`, `${quarterHour.n},${day.n}`]
    return {
      'x-ratelimit-limit': `${this.budgets.quarterHour * 2},${this.budgets.day * 2}`,
      'x-ratelimit-usage': usage,
      'x-readratelimit-limit': limit,
      'x-readratelimit-usage': usage,
    }
  }

  #token(form: URLSearchParams): Response {
    const refresh = form.get('refresh_token')
    const found = [...this.#athletes].find(([, athlete]) => athlete.refresh === refresh)
    const isKnown = form.get('client_secret') === this.clientSecret
    if (found === undefined || !isKnown) {
      const [resource, field] = isKnown ? ['RefreshToken', 'refresh_token'] : ['Application', 'client_secret']
      const errors = [{ resource, field, code: 'invalid' }]
      return Response.json({ message: 'Bad Request', errors }, { status: 400 })
    }
    const [name, athlete] = found
    this.refreshes++
    athlete.access = `access-${name}-${this.refreshes}`
    athlete.refresh = `refresh-${name}-${this.refreshes}`
    athlete.expiresAt = this.#clock.now() + TOKEN_LIFE
    return Response.json({
      token_type: 'Bearer',
      access_token: athlete.access,
      refresh_token: athlete.refresh,
      expires_at: Math.floor(athlete.expiresAt / 1_000),
      expires_in: TOKEN_LIFE / 1_000,
    })
  }
}
