// `GarminApi` asks Garmin for the data of the past, which then arrives like any other push.
import type { Limit, Sluice } from 'sluice'
import { daysOf, type BackfillPart } from './domain/backfill.ts'
import type { Settings } from './settings.ts'

export type Asked = 'asked' | 'asked before' | 'refused' | 'not accepted' | 'too often'

export class GarminApi {
  readonly #url: string
  readonly #calls: Limit
  readonly #days: Limit

  constructor(app: Sluice, url: string, { backfillDays }: Settings['garmin']) {
    this.#url = url
    // The design: at most 100 requests in a quarter of an hour. Garmin itself counts the days that are asked for.
    this.#calls = app.limit('garmin', { rate: 100, per: '15m' })
    this.#days = app.limit('garmin-days', { rate: Math.max(backfillDays, 90), per: '1m' })
  }

  async backfill(part: BackfillPart, token: string, signal: AbortSignal): Promise<Asked> {
    const query = `summaryStartTimeInSeconds=${part.from}&summaryEndTimeInSeconds=${part.to}`
    const url = `${this.#url}/wellness-api/rest/backfill/${part.type}?${query}`
    const init = { headers: { authorization: `Bearer ${token}` }, signal }
    const response = await this.#days.run(() => this.#calls.fetch(url, init), { cost: daysOf(part), signal })
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
