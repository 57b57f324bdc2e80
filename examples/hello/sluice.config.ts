// Greets each person once, when they have stopped knocking.
import { defineEvent, Sluice } from 'sluice'
import { bearer } from 'sluice/sources'
import { z } from 'zod'
import type { Surroundings } from '../kit/example.ts'
import { production } from '../kit/production.ts'

const knock = defineEvent('door/knock', z.object({ name: z.string() }))

export function build({ store, env, options, url }: Surroundings): Sluice {
  const app = new Sluice({ store, ...options })
  const mail = app.limit('mail', { rate: 5, per: '1s' })
  app.source('door', bearer({ secret: env['DOOR_TOKEN'] ?? 'knock-knock' }))
  app.flow('greet', {
    on: knock,
    key: (event) => event.data.name,
    debounce: { quiet: Number(env['QUIET_MS'] ?? 10_000), max: '1m' },
    retry: ['1s', '2s'],
    run: async ({ key, events, signal }) => {
      const body = JSON.stringify({ to: key, text: `Hello ${key}, you knocked ${events.length} times.` })
      const { ok, status } = await mail.fetch(`${url('mail')}/send`, { method: 'POST', body, signal })
      if (!ok) throw new Error(`The mail service answered ${status}.`)
    },
  })
  return app
}

export default build(production({ store: 'sqlite:hello.db', urls: { mail: 'https://mail.example' } }))
