// Reads and checks the environment of the app: a typo is reported by name before anything starts.
import { SluiceError, type Duration } from 'sluice'
import type { Calendar, Day } from './domain/business-days.ts'
import { RANKINGS, type Ranking } from './domain/ranking.ts'

/** What every call to Notion goes by. */
export interface ClientSettings {
  readonly notion: Pick<NotionSettings, 'token' | 'url'>
  readonly rate: number
  /** Undefined: never more than `rate` in any second. Else a token bucket of this capacity. */
  readonly burst: number | undefined
}

export interface Settings extends ClientSettings {
  readonly store: string
  readonly notion: NotionSettings
  /** The header `x-secret` of the "Send webhook" action. */
  readonly actionSecret: string
  /** Of the integration's webhooks; undefined: it comes by handshake, and is kept under SLUICE_ENCRYPTION_KEY. */
  readonly verificationToken: string | undefined
  readonly debounce: Debounce
  /** The waits before each further attempt, from BACKOFF_INITIAL_MS up to BACKOFF_MAX_MS. */
  readonly backoff: readonly Duration[]
  readonly ranking: Ranking
  readonly calendarOf: (user: string) => Calendar
  /** Demo mode: only this person. */
  readonly only: string | undefined
  readonly dryRun: boolean
  /** Whether the app logs, and tells the lives of its users. */
  readonly isLogging: boolean
  readonly now: () => number
}

interface NotionSettings {
  readonly token: string
  readonly url: string
  readonly dataSource: string
  /** The user that the integration writes as: `GET /v1/users/me` tells it. */
  readonly bot: string
}

interface Debounce {
  readonly from: Duration
  readonly to: Duration
  /** Of a page, before it is read. */
  readonly page: Duration
}

type Environment = Readonly<Record<string, string | undefined>>

const DEBOUNCE_MS = 10_000
const DEBOUNCE_MS_MOST = 60_000
const PAGE_MS = 5_000
const RPS = 3
const BACKOFF_INITIAL_MS = 250
const BACKOFF_MAX_MS = 2_000
const BACKOFF_RETRIES = 3
/** 250 ms, 1 s, 2 s: each wait is four times as long, up to the longest. */
const BACKOFF_FACTOR = 4

export function settingsFrom(env: Environment): Settings {
  const debounce = whole(env, 'DEBOUNCE_MS') ?? DEBOUNCE_MS
  return {
    store: said(env, 'SLUICE_STORE') ?? 'sqlite:nextup.db',
    notion: {
      token: needed(env, 'NOTION_TOKEN', 'the secret of your integration'),
      url: said(env, 'NOTION_URL') ?? 'https://api.notion.com',
      dataSource: needed(env, 'NOTION_DATA_SOURCE_ID', 'the data source with the tasks'),
      bot: needed(env, 'NOTION_BOT_ID', '`id` of GET https://api.notion.com/v1/users/me'),
    },
    actionSecret: needed(env, 'NOTION_ACTION_SECRET', 'what the "Send webhook" action sends as x-secret'),
    verificationToken: said(env, 'NOTION_VERIFICATION_TOKEN'),
    debounce: {
      from: debounce,
      to: Math.max(debounce, DEBOUNCE_MS_MOST),
      page: whole(env, 'PAGE_DEBOUNCE_MS') ?? PAGE_MS,
    },
    backoff: backoff(env),
    rate: whole(env, 'GLOBAL_RPS') ?? RPS,
    burst: whole(env, 'TOKEN_BUCKET_CAPACITY'),
    ranking: rankingOf(said(env, 'RANKING') ?? 'importance'),
    calendarOf: calendars(env),
    only: said(env, 'DEMO_USER'),
    dryRun: isOn(env, 'DRY_RUN', false),
    isLogging: isOn(env, 'ENABLE_LOGGING', true),
    now: Date.now,
  }
}

/** An empty variable counts as absent. */
function said(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim() ?? ''
  return value === '' ? undefined : value
}

function needed(env: Environment, name: string, what: string): string {
  const value = said(env, name)
  if (value === undefined) throw invalid(`${name} is missing: ${what}.`)
  return value
}

function whole(env: Environment, name: string): number | undefined {
  const text = said(env, name)
  if (text === undefined) return undefined
  if (/^[1-9]\d*$/.test(text)) return Number(text)
  throw invalid(`${name} is ${JSON.stringify(text)}; it is a whole number from 1.`)
}

function backoff(env: Environment): readonly Duration[] {
  const initial = whole(env, 'BACKOFF_INITIAL_MS') ?? BACKOFF_INITIAL_MS
  const longest = whole(env, 'BACKOFF_MAX_MS') ?? Math.max(initial, BACKOFF_MAX_MS)
  if (longest < initial) throw invalid(`BACKOFF_MAX_MS is ${longest}; it is at least BACKOFF_INITIAL_MS, ${initial}.`)
  const retries = said(env, 'BACKOFF_RETRIES') === '0' ? 0 : (whole(env, 'BACKOFF_RETRIES') ?? BACKOFF_RETRIES)
  return Array.from({ length: retries }, (_, n) => Math.min(longest, initial * BACKOFF_FACTOR ** n))
}

function isOn(env: Environment, name: string, otherwise: boolean): boolean {
  const text = said(env, name)?.toLowerCase()
  if (text === undefined) return otherwise
  if (['1', 'true', 'yes', 'on'].includes(text)) return true
  if (['0', 'false', 'no', 'off'].includes(text)) return false
  throw invalid(`${name} is ${JSON.stringify(text)}; it is 1 or 0.`)
}

function rankingOf(name: string): Ranking {
  const ranking = Object.hasOwn(RANKINGS, name) ? RANKINGS[name] : undefined
  if (ranking !== undefined) return ranking
  throw invalid(`RANKING is ${JSON.stringify(name)}; it is one of ${Object.keys(RANKINGS).join(', ')}.`)
}

/** Notion does not say where its users live. */
function calendars(env: Environment): Settings['calendarOf'] {
  const timeZone = zone(said(env, 'TIME_ZONE') ?? 'UTC', 'TIME_ZONE')
  const zones = new Map(
    zonesIn(said(env, 'USER_TIME_ZONES') ?? '{}').map(([user, name]) => [
      user,
      zone(name, `USER_TIME_ZONES of ${user}`),
    ]),
  )
  const holidays: ReadonlySet<Day> = new Set((env['HOLIDAYS'] ?? '').split(',').flatMap((text) => holiday(text.trim())))
  return (user) => ({ timeZone: zones.get(user) ?? timeZone, holidays })
}

function zonesIn(text: string): readonly (readonly [string, unknown])[] {
  try {
    const zones: unknown = JSON.parse(text)
    if (typeof zones === 'object' && zones !== null) return Object.entries(zones)
  } catch {
    // Said below.
  }
  throw invalid(`USER_TIME_ZONES is ${JSON.stringify(text)}; it is JSON, as {"<user id>":"Europe/Berlin"}.`)
}

function zone(name: unknown, what: string): string {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: String(name) }).resolvedOptions().timeZone
  } catch {
    throw invalid(`${what} is ${JSON.stringify(name)}; it is the name of a time zone, as Europe/Berlin.`)
  }
}

function holiday(text: string): readonly Day[] {
  if (text === '') return []
  if (/^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))) return [text]
  throw invalid(`HOLIDAYS has ${JSON.stringify(text)}; it is a list of days as 2026-12-25, with commas between.`)
}

function invalid(what: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', what)
}
