// The API of the alerts. It needs an API key of the app: `read` to look, `operate` to change.
import { SluiceError, type Sluice } from 'sluice'
import type { Alerts } from './alerts.ts'
import { InvalidAlert } from './domain/alert.ts'
import { problem } from '../kit/problem.ts'

export function alertRoutes(app: Sluice, alerts: Alerts): void {
  const [read, operate] = [{ role: 'read' }, { role: 'operate' }] as const
  app.route('POST', '/alerts', (request) => answer(async () => alerts.create(await bodyOf(request)), 201), operate)
  app.route(
    'GET',
    '/workspaces/:workspace/alerts',
    (_, { params }) => answer(() => alerts.list(params.workspace)),
    read,
  )
  app.route('GET', '/alerts/:id', (_, { params }) => answer(() => alerts.show(params.id)), read)
  app.route(
    'PATCH',
    '/alerts/:id',
    (request, { params }) => answer(async () => alerts.change(params.id, await bodyOf(request))),
    operate,
  )
  app.route('DELETE', '/alerts/:id', (_, { params }) => answer(() => alerts.remove(params.id)), operate)
  app.route('POST', '/alerts/:id/test', (_, { params }) => answer(() => alerts.test(params.id)), operate)
  app.route('GET', '/alerts/:id/deliveries', (_, { params }) => answer(() => alerts.deliveries(params.id)), read)
}

/** Nothing found is a 404, and a faulty field a 400 with its name. */
async function answer(ask: () => Promise<object | undefined>, status = 200): Promise<Response> {
  try {
    const found = await ask()
    return found === undefined ? problem(404, 'There is no such alert.') : Response.json(found, { status })
  } catch (error) {
    if (error instanceof InvalidAlert) return problem(400, error.message)
    if (error instanceof SluiceError && error.code === 'ENDPOINT_INVALID') return problem(400, error.message)
    throw error
  }
}

async function bodyOf(request: Request): Promise<unknown> {
  return request.json().catch(() => {
    throw new InvalidAlert('The body must be JSON.')
  })
}
