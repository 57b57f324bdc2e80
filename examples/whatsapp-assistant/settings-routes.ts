// The settings of a line over HTTP, for callers with an API key of the app.
import type { Sluice } from 'sluice'
import { checkChange } from './domain/settings.ts'
import type { SettingsTable } from './settings-table.ts'

export function settingsRoutes(app: Sluice, settings: SettingsTable): void {
  app.route('GET', '/settings/:line', async (_, { params }) => Response.json((await settings.of([params.line]))[0]), {
    role: 'read',
  })
  app.route(
    'PATCH',
    '/settings/:line',
    async (request, { params }) => {
      try {
        return Response.json(await settings.change(params.line, checkChange(await request.json())))
      } catch (error) {
        if (error instanceof TypeError || error instanceof SyntaxError) {
          return Response.json({ error: error.message }, { status: 400 })
        }
        throw error
      }
    },
    { role: 'operate' },
  )
}
