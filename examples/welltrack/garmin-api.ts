// `GarminApi` asks Garmin for the data of the past, which then arrives like any other push.
import type { Limit } from 'sluice'
import type { Connection } from './data/records.ts'
import { daysOf, type BackfillPart } from './domain/backfill.ts'
import { OAuth } from './oauth.ts'
import type { Parts } from './parts.ts'

export type Asked = 'asked' | 'asked before' | 'refused' | 'not accepted' | 'too often'

export class GarminApi {
  readonly #url: string
  readonly #calls: Limit
  readonly #days: Limit
  readonly #oauth: OAuth

  constructor({ app, url, settings, records, clock }: Parts) {
    const { backfillDays, clientId, clientSecret } = settings.garmin
    this.#url = url('garmin')
    // The design: at most 100 requests in a quarter of an hour. Garmin itself counts the days that are asked for.
    this.#calls = app.limit('garmin', { rate: 100, per: '15m' })
    this.#days = app.limit('garmin-days', { rate: Math.max(backfillDays, 90), per: '1m' })
    const limit = app.limit('garmin-oauth', { rate: 100, per: '15m' })
    const tokens = `${url('garmin-oauth')}/di-oauth2-service/oauth/token`
    this.#oauth = new OAuth({ url: tokens, clientId, clientSecret, limit, records, clock })
  }

  async backfill(connection: Connection, part: BackfillPart, signal: AbortSignal): Promise<Asked> {
    const query = `summaryStartTimeInSeconds=${part.from}&summaryEndTimeInSeconds=${part.to}`
    const url = `${this.#url}/wellness-api/rest/backfill/${part.type}?${query}`
    const ask = (token: string): Promise<Response> => {
      const init = { headers: { authorization: `Bearer ${token}` }, signal }
      return this.#days.run(() => this.#calls.fetch(url, init), { cost: daysOf(part), signal })
    }
    const response = await this.#oauth.call(connection, ask, signal)
    if (response === undefined) return 'not accepted'
    await response.body?.cancel()
    switch (response.status) {
      case 202:
        return 'asked'
      case 409:
        return 'asked before'
      case 401:
        return 'not accepted'
      case 403:
      case 412:
        return 'refused'
      case 429:
        await this.#calls.pause('60s')
        return 'too often'
    }
    throw new Error(`Garmin answered ${response.status} to a backfill.`)
  }
}
