// `sentryReport` makes a report of a dead letter in the form that Sentry takes: an envelope with one event.
import { hash } from 'node:crypto'

export interface DeadRun {
  readonly deadLetter: string
  readonly run: string
  readonly flow: string
  readonly tenant: string | null
  /** Null if the payload is encrypted, since a reason may quote it. */
  readonly reason: string | null
  readonly attempts: number
  readonly eventCount: number
  readonly firstFailedAt: number | null
  readonly at: number
}

export interface SentryReport {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** `dsn` is `https://<key>@<host>/<project>`. Sentry keeps one event per id, so a repeated report changes nothing. */
export function sentryReport(dead: DeadRun, dsn: string, id: string): SentryReport {
  const { username: key, pathname } = new URL(dsn)
  const eventId = hash('sha256', id).slice(0, 32)
  const event = {
    event_id: eventId,
    timestamp: dead.at / 1_000,
    platform: 'node',
    level: 'error',
    logger: 'welltrack',
    message: { formatted: `Dead letter in ${dead.flow}: ${dead.reason ?? 'the reason is encrypted'}` },
    fingerprint: ['dead-letter', dead.flow],
    tags: { flow: dead.flow },
    extra: {
      deadLetter: dead.deadLetter,
      attempts: dead.attempts,
      events: dead.eventCount,
      firstFailedAt: dead.firstFailedAt,
    },
  }
  const lines = [{ event_id: eventId, sent_at: new Date(dead.at).toISOString() }, { type: 'event' }, event]
  return {
    path: `/api${pathname}/envelope/`,
    headers: {
      'content-type': 'application/x-sentry-envelope',
      'x-sentry-auth': `Sentry sentry_version=7, sentry_client=welltrack/1.0, sentry_key=${key}`,
    },
    body: `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`,
  }
}
