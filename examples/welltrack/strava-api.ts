// `StravaApi` fetches activities under Strava's two budgets.
import type { Clock, Limit, Millis, Sluice } from 'sluice'
import type { Connection, HealthRecords } from './data/records.ts'
import { OAuth } from './oauth.ts'
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

export class StravaApi {
  readonly #options: StravaApiOptions
  readonly #quarterHour: Limit
  readonly #day: Limit
  readonly #athlete: Limit
  readonly #oauth: OAuth

  constructor(options: StravaApiOptions) {
    const { app, settings, records, clock } = options
    this.#options = options
    this.#quarterHour = app.limit('strava', { rate: settings.quarterHour, per: settings.window })
    this.#day = app.limit('strava-day', { rate: settings.day, per: settings.dayLength })
    // So that the backlog of one person leaves most of a budget to the others.
    this.#athlete = app.limit('strava-athlete', { rate: settings.perAthlete, per: settings.window })
    const { clientId, clientSecret } = settings
    const limit = app.limit('strava-oauth', { rate: 100, per: '15m' })
    this.#oauth = new OAuth({ url: `${options.url}/oauth/token`, clientId, clientSecret, limit, records, clock })
  }

  async activity(connection: Connection, id: string, signal: AbortSignal): Promise<Fetched> {
    const limit = this.#quarterHour.with(this.#day, this.#athlete.per(connection.externalId))
    const url = `${this.#options.url}/api/v3/activities/${id}`
    const get = async (token: string): Promise<Response> => {
      const response = await limit.fetch(url, { headers: { authorization: `Bearer ${token}` }, signal })
      await this.#observe(response)
      return response
    }
    const response = await this.#oauth.call(connection, get, signal)
    return response === undefined ? { kind: 'revoked' } : readActivity(response)
  }

  /** Strava counts from :00, :15, :30 and :45, and from midnight UTC. Other programs may use the same budgets. */
  async #observe({ status, headers }: Response): Promise<void> {
    const { clock, settings } = this.#options
    const now = clock.now()
    const [used, of] = ['usage', 'limit'].map((name) =>
      pairOf(headers, `x-readratelimit-${name}`, `x-ratelimit-${name}`),
    )
    const endOf = (length: Millis): Millis => (Math.floor(now / length) + 1) * length
    const [quarterEnds, dayEnds] = [endOf(settings.window), endOf(settings.dayLength)]
    if (used !== undefined && of !== undefined) {
      await this.#quarterHour.observe({ used: used[0], of: of[0], resetsAt: quarterEnds })
      await this.#day.observe({ used: used[1], of: of[1], resetsAt: dayEnds })
    }
    if (status !== 429) return
    const isDayOver = used !== undefined && of !== undefined && used[1] >= of[1]
    await (isDayOver ? this.#day.pause(dayEnds - now) : this.#quarterHour.pause(quarterEnds - now))
  }
}

async function readActivity(response: Response): Promise<Fetched> {
  const { status } = response
  if (status === 200) return { kind: 'activity', text: await response.text() }
  await response.body?.cancel()
  if (status === 404) return { kind: 'gone' }
  if (status === 401) return { kind: 'revoked' }
  if (status === 429) return { kind: 'exhausted' }
  throw new Error(`Strava answered ${status}.`)
}

/** `12,340`: of the quarter of an hour, and of the day. */
function pairOf(headers: Headers, ...names: readonly string[]): readonly [number, number] | undefined {
  const text = names.map((name) => headers.get(name)).find((one) => one !== null)
  const [quarterHour = NaN, day = NaN] = (text ?? '').split(',').map(Number)
  return Number.isNaN(quarterHour) || Number.isNaN(day) ? undefined : [quarterHour, day]
}
