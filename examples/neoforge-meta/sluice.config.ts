// NeoForge Meta: discovers the versions of NeoForge and Minecraft, and sends the news to subscribers in signed, ordered batches.
import { Sluice } from 'sluice'
import type { Surroundings } from '../kit/example.ts'
import { production } from '../kit/production.ts'
import { VersionsTable } from './data/versions-table.ts'
import { discover } from './discovery.ts'
import { VERSION_EVENTS } from './domain/events.ts'
import { webhookHealth } from './domain/health.ts'
import { settingsFrom } from './settings.ts'

export function build({ store, env, options, url, watch }: Surroundings): Sluice {
  const settings = settingsFrom(env)
  const app = new Sluice({
    store,
    encryptionKey: settings.encryptionKey,
    keep: { events: settings.eventRetention },
    delivery: {
      userAgent: 'NeoForge-Meta-API/1.0',
      deadline: settings.requestTimeout,
      proof: settings.proof,
      registrations: { rate: settings.registrations, per: '1m' },
      allowLoopback: settings.isDevelopment,
    },
    ...options,
  })
  const table = new VersionsTable({ store, watch })
  const { fetch } = app.limit('repositories', { rate: 5, per: '1s' })

  // Two schedules: a repository that is down does not keep the news of the other one back.
  app.every('discover-neoforge', settings.discovery, ({ signal }) =>
    discover({ app, table }, 'NEOFORGE', { url: url('maven'), fetch, signal }),
  )
  app.every('discover-minecraft', settings.discovery, ({ signal }) =>
    discover({ app, table }, 'MINECRAFT', { url: url('minecraft'), fetch, signal }),
  )

  app.delivery('versions', {
    on: VERSION_EVENTS,
    batch: { every: settings.batchInterval, maxEvents: settings.maxEvents },
    retry: settings.retry,
    keep: settings.batchRetention,
    defaults: {
      from: 'beginning',
      signing: { kind: 'hmac', header: 'X-Webhook-Signature', encoding: 'hex' },
      form: { kind: 'events', fields: { component: 'data.component', componentVersion: 'data.version' } },
    },
  })

  app.route('GET', '/health', async () => {
    const health = webhookHealth(await app.endpoints.list())
    return Response.json(health, { status: health.status === 'DOWN' ? 503 : 200 })
  })
  return app
}

const urls = { maven: 'https://maven.neoforged.net', minecraft: 'https://piston-meta.mojang.com' }

export default build(production({ store: 'postgres://localhost/neoforge_meta', urls }))
