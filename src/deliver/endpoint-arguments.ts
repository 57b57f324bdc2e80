// `ENDPOINT_ARGUMENTS` describes the arguments that each member of `app.endpoints` takes.
import type { ArgumentShapes } from '../validate/arguments.ts'
import type { Endpoints } from './endpoints.ts'

const byId = { id: 'text', 'by?': 'text' } as const

export const ENDPOINT_ARGUMENTS: ArgumentShapes<Endpoints> = {
  // `parseEndpointFields` checks the endpoint itself.
  create: { endpoint: 'anything', 'by?': 'text' },
  get: { id: 'text' },
  update: { id: 'text', change: { 'headers?': 'object' }, 'by?': 'text' },
  pause: byId,
  resume: byId,
  enable: { id: 'text', how: { 'from?': 'anything', 'by?': 'text' } },
  rotateSecret: { id: 'text', 'how?': { 'by?': 'text' } },
  delete: byId,
  deliveries: { id: 'text', 'n?': 'count' },
  prove: byId,
  test: { id: 'text' },
  replay: { id: 'text', 'which?': { 'letter?': 'text' } },
  createToken: byId,
  revokeToken: byId,
  findTokenOwner: { token: 'text' },
}
