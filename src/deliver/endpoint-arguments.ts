// What each member of `app.endpoints` takes.
import type { Members } from '../model/arguments.ts'
import type { Endpoints } from './endpoints.ts'

const byId = { id: 'text', 'by?': 'text' } as const

export const ENDPOINTS: Members<Endpoints> = {
  // What is registered is checked where it is understood.
  add: { endpoint: 'anything', 'by?': 'text' },
  get: { id: 'text' },
  change: { id: 'text', change: { 'headers?': 'object' }, 'by?': 'text' },
  pause: byId,
  resume: byId,
  enable: { id: 'text', how: { 'from?': 'anything', 'by?': 'text' } },
  rotateSecret: { id: 'text', 'how?': { 'by?': 'text' } },
  remove: byId,
  deliveries: { id: 'text', 'n?': 'count' },
  prove: byId,
  test: { id: 'text' },
  replay: { id: 'text', 'which?': { 'letter?': 'text' } },
  makeToken: byId,
  revokeToken: byId,
  ownerOf: { token: 'text' },
}
