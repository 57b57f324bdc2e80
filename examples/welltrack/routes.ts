// The app's own API: people connect, ask for their past, and have everything removed. It needs an API key.
import { problem } from '../kit/problem.ts'
import { backfillProgress, wantBackfill } from './flows/backfill.ts'
import { connectionMade } from './flows/connection-events.ts'
import type { Parts } from './parts.ts'
import { DAYS_MAX } from './domain/backfill.ts'
import { isRecord, type Provider } from './domain/metric.ts'

/** `GET /people/:profile` returns the newest ones. */
const METRICS_MAX = 10_000

export function routes(parts: Parts): void {
  const { app, records, clock } = parts

  app.route(
    'POST',
    '/connections',
    async (request) => {
      const asked = await bodyOf(request)
      const provider = asked?.['provider']
      const externalId = asked?.['externalId']
      if (!isProvider(provider) || typeof externalId !== 'string' || externalId === '')
        return problem(400, 'provider must be garmin or strava, and externalId the id of the person there.')
      const before = await records.find(provider, externalId)
      // The id of the provider finds the person who comes back.
      const profileId = before?.profileId ?? asked?.['profileId']
      if (typeof profileId !== 'string' || profileId === '') return problem(400, 'profileId must be a text.')
      const { tokens: given, permissions } = asked ?? {}
      const tokens =
        isRecord(given) && typeof given['access'] === 'string' && typeof given['refresh'] === 'string'
          ? { access: given['access'], refresh: given['refresh'], expiresAt: Number(given['expiresAt'] ?? 0) }
          : undefined
      const metadata = permissions === undefined ? {} : { permissions }
      const made = await records.connect({ provider, externalId, profileId, tokens, metadata }, clock.now())
      // The caller repeats a request that failed half-way, so the event follows the row. Only the first one of a connection counts.
      const { createdAt, disconnectedAt: since } = made
      const id = `${provider}/${externalId}/${createdAt}/${since ?? ''}`
      const news = { provider, externalId, profileId, ...(since !== undefined && { since }) }
      await app.publish(connectionMade({ ...news, id }, { tenant: externalId, dedupeId: id }))
      return Response.json({ profileId, isKnown: before !== undefined }, { status: before === undefined ? 201 : 200 })
    },
    { role: 'operate' },
  )

  app.route(
    'POST',
    '/backfills',
    async (request) => {
      const asked = await bodyOf(request)
      const { profileId, days = DAYS_MAX } = asked ?? {}
      const id = asked?.['id'] ?? `${String(profileId)}-${String(days)}`
      if (typeof profileId !== 'string' || typeof id !== 'string') return problem(400, 'profileId must be a text.')
      if (typeof days !== 'number' || !Number.isInteger(days) || days < 1 || days > DAYS_MAX)
        return problem(400, `days must be a whole number from 1 to ${DAYS_MAX}.`)
      const progress = await wantBackfill(parts, { id, profileId, days })
      if (progress === 'not connected') return problem(404, `${profileId} is not connected to Garmin.`)
      if (progress === 'of somebody else') return problem(409, 'The backfill with this id is that of another person.')
      return Response.json(progress, { status: 202 })
    },
    { role: 'operate' },
  )

  app.route(
    'GET',
    '/backfills/:id',
    async (_, { params }) => {
      const progress = await backfillProgress(records, params.id)
      return progress === undefined ? problem(404, 'There is no such backfill.') : Response.json(progress)
    },
    { role: 'read' },
  )

  app.route(
    'GET',
    '/people/:profile',
    async (_, { params }) => {
      const connections = await records.connectionsOf(params.profile)
      const metrics = await records.metricsOf(params.profile, METRICS_MAX + 1)
      return Response.json({
        connections: connections.map(({ provider, externalId, isConnected, tokens, metadata }) => ({
          provider,
          externalId,
          isConnected,
          metadata,
          hasTokens: tokens !== undefined,
        })),
        metrics: metrics.slice(0, METRICS_MAX),
        hasOlder: metrics.length > METRICS_MAX,
      })
    },
    { role: 'read' },
  )

  app.route(
    'DELETE',
    '/people/:profile',
    async (_, { params }) => {
      const connections = await records.connectionsOf(params.profile)
      // First the events, which aborts what runs, then the rows that the runs have written.
      for (const { externalId } of connections) await app.admin.purge({ tenant: externalId })
      await records.purge(params.profile)
      return Response.json({ connections: connections.length })
    },
    { role: 'operate' },
  )
}

function isProvider(value: unknown): value is Provider {
  return value === 'garmin' || value === 'strava'
}

async function bodyOf(request: Request): Promise<Readonly<Record<string, unknown>> | undefined> {
  const body: unknown = await request.json().catch(() => undefined)
  return isRecord(body) ? body : undefined
}
