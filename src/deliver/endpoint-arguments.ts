// The arguments of `app.endpoints`, which its members check when they are called.
import type { ArgumentShapes } from '../validate/options.ts'
import type { Endpoints } from './endpoints.ts'

const byId = { id: 'text', 'by?': 'text' } as const

/** The arguments of each member, which are checked when it is called. */
export const ENDPOINT_ARGUMENTS: ArgumentShapes<Endpoints> = {
  // `parseEndpointFields` checks the endpoint itself.
  create: { endpoint: 'anything', 'by?': 'text', 'bounds?': { 'mostOfTenant?': 'count' } },
  get: { id: 'text' },
  update: { id: 'text', change: { 'headers?': 'object' }, 'by?': 'text' },
  pause: byId,
  resume: byId,
  enable: { id: 'text', how: { 'from?': 'anything', 'by?': 'text' } },
  rotateSecret: { id: 'text', 'how?': { 'by?': 'text' } },
  delete: byId,
  deliveries: { id: 'text', 'n?': 'count' },
  stats: { id: 'text', 'options?': 'object' },
  prove: byId,
  test: { id: 'text', 'what?': { 'data?': 'object' } },
  replay: { id: 'text', 'which?': { 'deadLetter?': 'text', 'type?': 'text' } },
  createToken: byId,
  revokeToken: byId,
  findTokenOwner: { token: 'text' },
}
