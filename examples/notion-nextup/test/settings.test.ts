// The environment of the app: what is read, and what is wrong with it in words.
import { describe, expect, it } from 'vitest'
import { byImportance, RANKINGS } from '../domain/ranking.ts'
import { settingsFrom } from '../settings.ts'
import { standInSettings } from '../stand-in/settings.ts'

const of = (env: Readonly<Record<string, string>> = {}): ReturnType<typeof settingsFrom> =>
  standInSettings('http://n', env)

describe('settings', () => {
  it('are those of the design unless said', () => {
    expect(of()).toMatchObject({
      debounce: { from: 10_000, to: 60_000, page: 5_000 },
      backoff: [250, 1_000, 2_000],
      isLogging: true,
      rate: 3,
      burst: undefined,
      ranking: byImportance,
      only: undefined,
      dryRun: false,
    })
    expect(of({ DEMO_USER: '', RANKING: ' ', DEBOUNCE_MS: '' })).toMatchObject({ only: undefined, rate: 3 })
    expect(of().calendarOf('ada')).toEqual({ timeZone: 'UTC', holidays: new Set() })
  })

  it('are read from the environment', () => {
    const said = of({
      DEBOUNCE_MS: '15000',
      GLOBAL_RPS: '2',
      TOKEN_BUCKET_CAPACITY: '5',
      RANKING: 'weighted',
      DEMO_USER: 'Ada',
      DRY_RUN: '1',
      HOLIDAYS: '2026-12-25, 2026-12-26',
      TIME_ZONE: 'Europe/Berlin',
      USER_TIME_ZONES: '{"ben":"Asia/Tokyo"}',
    })
    expect(said).toMatchObject({ debounce: { from: 15_000 }, rate: 2, burst: 5, only: 'Ada', dryRun: true })
    expect(said.ranking).toBe(RANKINGS['weighted'])
    expect(said.calendarOf('ada')).toEqual({
      timeZone: 'Europe/Berlin',
      holidays: new Set(['2026-12-25', '2026-12-26']),
    })
    expect(said.calendarOf('ben').timeZone).toBe('Asia/Tokyo')
    expect(of({ DEBOUNCE_MS: '90000' }).debounce.to).toBe(90_000)
  })

  it('the backoff grows fourfold from its first wait to its longest, as often as it may', () => {
    expect(of({ BACKOFF_INITIAL_MS: '100', BACKOFF_MAX_MS: '5000', BACKOFF_RETRIES: '5' }).backoff).toEqual([
      100, 400, 1_600, 5_000, 5_000,
    ])
    expect(of({ BACKOFF_RETRIES: '0' }).backoff).toEqual([])
    expect(of({ BACKOFF_INITIAL_MS: '3000' }).backoff).toEqual([3_000, 3_000, 3_000])
  })

  it.each(['0', 'false', 'NO'])('ENABLE_LOGGING=%s switches the log off', (text) => {
    expect(of({ ENABLE_LOGGING: text }).isLogging).toBe(false)
    expect(of({ ENABLE_LOGGING: '1' }).isLogging).toBe(true)
  })

  it.each([
    [{ BACKOFF_RETRIES: '-1' }, 'BACKOFF_RETRIES is "-1"; it is a whole number from 1.'],
    [
      { BACKOFF_INITIAL_MS: '500', BACKOFF_MAX_MS: '100' },
      'BACKOFF_MAX_MS is 100; it is at least BACKOFF_INITIAL_MS, 500.',
    ],
    [{ ENABLE_LOGGING: 'maybe' }, 'ENABLE_LOGGING is "maybe"; it is 1 or 0.'],
    [{ DEBOUNCE_MS: '10s' }, 'DEBOUNCE_MS is "10s"; it is a whole number from 1.'],
    [{ GLOBAL_RPS: '0' }, 'GLOBAL_RPS is "0"; it is a whole number from 1.'],
    [{ RANKING: 'luck' }, 'RANKING is "luck"; it is one of importance, weighted.'],
    [{ RANKING: 'toString' }, 'RANKING is "toString"; it is one of importance, weighted.'],
    [{ HOLIDAYS: '25.12.' }, 'HOLIDAYS has "25.12."; it is a list of days as 2026-12-25, with commas between.'],
    [{ TIME_ZONE: 'Berlin' }, 'TIME_ZONE is "Berlin"; it is the name of a time zone, as Europe/Berlin.'],
    [{ USER_TIME_ZONES: 'ben' }, 'USER_TIME_ZONES is "ben"; it is JSON, as {"<user id>":"Europe/Berlin"}.'],
    [{ USER_TIME_ZONES: '{"ben":7}' }, 'USER_TIME_ZONES of ben is 7; it is the name of a time zone'],
    [{ NOTION_TOKEN: ' ' }, 'NOTION_TOKEN is missing: the secret of your integration.'],
    [
      { NOTION_ACTION_SECRET: '' },
      'NOTION_ACTION_SECRET is missing: what the "Send webhook" action sends as x-secret.',
    ],
  ] as const)('%o is told by name', (env, message) => {
    expect(() => of(env)).toThrow(message)
  })
})
