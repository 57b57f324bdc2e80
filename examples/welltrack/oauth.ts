// `OAuth` gives calls the tokens of a person, and refreshes them at the provider.
import type { Clock, Limit, Millis } from 'sluice'
import type { Connection, HealthRecords, Tokens } from './data/records.ts'
import { isRecord } from './domain/metric.ts'

export interface OAuthOptions {
  /** The address of the provider's token endpoint. */
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  /** The limit of the token endpoint. */
  readonly limit: Limit
  readonly records: HealthRecords
  readonly clock: Clock
}

/** A token that is about to expire is refreshed before the call. */
const EARLY: Millis = 5 * 60_000

export class OAuth {
  readonly #options: OAuthOptions

  constructor(options: OAuthOptions) {
    this.#options = options
  }

  /**
   * Calls with a token of the person, and a second time with a new one if the provider does not accept the first. Returns undefined
   * if the provider refuses to refresh the tokens: the person has revoked the permission.
   */
  async call(
    connection: Connection,
    call: (token: string) => Promise<Response>,
    signal: AbortSignal,
  ): Promise<Response | undefined> {
    const { tokens } = connection
    if (tokens === undefined) return undefined
    const isFresh = tokens.expiresAt - this.#options.clock.now() > EARLY
    const current = isFresh ? tokens : await this.#refresh(connection, tokens, signal)
    if (current === undefined) return undefined
    const response = await call(current.access)
    if (response.status !== 401 || !isFresh) return response
    await response.body?.cancel()
    const next = await this.#refresh(connection, tokens, signal)
    return next === undefined ? undefined : call(next.access)
  }

  /** The flows have one run of a person at a time, because a provider replaces the refresh token as well. */
  async #refresh(connection: Connection, { refresh }: Tokens, signal: AbortSignal): Promise<Tokens | undefined> {
    const { url, clientId, clientSecret, limit, records, clock } = this.#options
    const body = new URLSearchParams({
      client_id: clientId,
      client_secret: clientSecret,
      grant_type: 'refresh_token',
      refresh_token: refresh,
    })
    const response = await limit.fetch(url, { method: 'POST', body, signal })
    const text = await response.text()
    if (isRevoked(response.status, text)) return undefined
    const answer: unknown = response.ok ? JSON.parse(text) : undefined
    if (!isRecord(answer) || typeof answer['access_token'] !== 'string' || typeof answer['refresh_token'] !== 'string')
      throw new Error(
        `${new URL(url).host} answered ${response.status} to the refresh of a token: ${text.slice(0, 200)}`,
      )
    const next = {
      access: answer['access_token'],
      refresh: answer['refresh_token'],
      expiresAt: clock.now() + Number(answer['expires_in']) * 1_000,
    }
    if (await records.refreshTokens(connection, next)) return next
    // The person has connected again, or has left, since the connection was read.
    return (await records.find(connection.provider, connection.externalId))?.tokens
  }
}

/** Wrong credentials of the app have the same status. They must not end the connections of everybody. */
function isRevoked(status: number, text: string): boolean {
  return (status === 400 || status === 401) && /invalid_grant|"resource"\s*:\s*"RefreshToken"/.test(text)
}
