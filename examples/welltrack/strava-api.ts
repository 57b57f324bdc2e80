// `StravaApi` fetches activities under Strava's two budgets, and refreshes the tokens of a person.
import type { Clock, Limit, Millis, Sluice } from 'sluice'
import type { Connection, HealthRecords, Tokens } from './data/records.ts'
import { isRecord } from './domain/metric.ts'
import type { Settings } from './settings.ts'

export type Fetched =
  | { readonly kind: 'activity'; readonly text: string }
  /** It was deleted, or is no longer shared with us. */
  | { readonly kind: 'gone' }
  /** A budget is used up, until the pause of its limit is over. */
  | { readonly kind: 'exhausted' }
  /** The person has revoked the permission. */
  | { readonly kind: 'revoked' }

export interface StravaApiOptions {
  readonly app: Sluice
  readonly url: string
  readonly clock: Clock
  readonly records: HealthRecords
  readonly settings: Settings['strava']
}

const MINUTE: Millis = 60_000
const DAY: Millis = 24 * 60 * MINUTE
/** A token that is about to expire is refreshed before the call. */
const EARLY: Millis = 5 * MINUTE

export class StravaApi {
  readonly #options: StravaApiOptions
  readonly #quarterHour: Limit
  readonly #day: Limit
  readonly #athlete: Limit
  readonly #oauth: Limit

  constructor(options: StravaApiOptions) {
    const { app, settings } = options
    this.#options = options
    this.#quarterHour = app.limit('strava', { rate: settings.quarterHour, per: settings.window })
    this.#day = app.limit('strava-day', { rate: settings.day, per: '24h' })
    // So that the backlog of one person leaves most of a budget to the others.
    this.#athlete = app.limit('strava-athlete', { rate: settings.perAthlete, per: settings.window })
    this.#oauth = app.limit('strava-oauth', { rate: 100, per: '15m' })
  }

  async activity(connection: Connection, id: string, signal: AbortSignal): Promise<Fetched> {
    const { tokens } = connection
    if (tokens === undefined) return { kind: 'revoked' }
    const isFresh = tokens.expiresAt - this.#options.clock.now() > EARLY
    const current = isFresh ? tokens : await this.#refresh(connection, tokens, signal)
    if (current === undefined) return { kind: 'revoked' }
    const first = await this.#get(connection, id, { tokens: current, signal })
    if (first.status !== 401 || !isFresh) return this.#read(first)
    const next = await this.#refresh(connection, tokens, signal)
    return next === undefined
      ? { kind: 'revoked' }
      : this.#read(await this.#get(connection, id, { tokens: next, signal }))
  }

  async #get(
    { externalId }: Connection,
    id: string,
    { tokens, signal }: { readonly tokens: Tokens; readonly signal: AbortSignal },
  ): Promise<Response> {
    const limit = this.#quarterHour.with(this.#day, this.#athlete.per(externalId))
    const headers = { authorization: `Bearer ${tokens.access}` }
    return limit.fetch(`${this.#options.url}/api/v3/activities/${id}`, { headers, signal })
  }

  async #read(response: Response): Promise<Fetched> {
    await this.#observe(response)
    const { status } = response
    if (status === 200) return { kind: 'activity', text: await response.text() }
    await response.body?.cancel()
    if (status === 404) return { kind: 'gone' }
    if (status === 401) return { kind: 'revoked' }
    if (status === 429) return { kind: 'exhausted' }
    throw new Error(`Strava answered ${status}.`)
  }

  /** Strava counts from :00, :15, :30 and :45, and from midnight UTC. Other programs may use the same budgets. */
  async #observe({ status, headers }: Response): Promise<void> {
    const { clock, settings } = this.#options
    const now = clock.now()
    const [used, of] = ['usage', 'limit'].map((name) =>
      pairOf(headers, `x-readratelimit-${name}`, `x-ratelimit-${name}`),
    )
    const quarterEnds = (Math.floor(now / settings.window) + 1) * settings.window
    const dayEnds = (Math.floor(now / DAY) + 1) * DAY
    if (used !== undefined && of !== undefined) {
      await this.#quarterHour.observe({ used: used[0], of: of[0], resetsAt: quarterEnds })
      await this.#day.observe({ used: used[1], of: of[1], resetsAt: dayEnds })
    }
    if (status !== 429) return
    const isDayOver = used !== undefined && of !== undefined && used[1] >= of[1]
    await (isDayOver ? this.#day.pause(dayEnds - now) : this.#quarterHour.pause(quarterEnds - now))
  }

  /** One run of a person at a time gets here, because Strava replaces the refresh token as well. */
  async #refresh(connection: Connection, { refresh }: Tokens, signal: AbortSignal): Promise<Tokens | undefined> {
    const { url, settings, records } = this.#options
    const body = new URLSearchParams({
      client_id: settings.clientId,
      client_secret: settings.clientSecret,
      grant_type: 'refresh_token',
      refresh_token: refresh,
    })
    const response = await this.#oauth.fetch(`${url}/oauth/token`, { method: 'POST', body, signal })
    if (response.status === 400 || response.status === 401) return undefined
    if (!response.ok) throw new Error(`Strava answered ${response.status} to the refresh of a token.`)
    const answer: unknown = await response.json()
    if (!isRecord(answer) || typeof answer['access_token'] !== 'string' || typeof answer['refresh_token'] !== 'string')
      throw new Error('Strava answered the refresh of a token without tokens.')
    const next = {
      access: answer['access_token'],
      refresh: answer['refresh_token'],
      expiresAt: Number(answer['expires_at']) * 1_000,
    }
    return (await records.refreshTokens(connection, next)) ? next : undefined
  }
}

/** `12,340`: of the quarter of an hour, and of the day. */
function pairOf(headers: Headers, ...names: readonly string[]): readonly [number, number] | undefined {
  const text = names.map((name) => headers.get(name)).find((one) => one !== null)
  const [quarterHour = NaN, day = NaN] = (text ?? '').split(',').map(Number)
  return Number.isNaN(quarterHour) || Number.isNaN(day) ? undefined : [quarterHour, day]
}
