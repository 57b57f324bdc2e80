// Limits: how each stands, and the pause as an act of a person. The limit of a key is named `<limit>/<key>`.
import { hash } from 'node:crypto'
import { z } from 'zod'
import { route, type ApiRoute } from '../route.ts'
import { moment, NOTHING, PAGE, pageOf } from '../schemas.ts'
import type { Operated } from '../operated.ts'
import { duration, reason } from './acts.ts'
import { missing } from './missing.ts'

const TAG = 'limits'
/** Of a limit and a key. */
const limitName = z.string().min(1).max(17_000)
const ONE = z.strictObject({ name: limitName.meta({ description: 'A slash in it is written %2F.' }) })

const LIMIT = z.strictObject({
  name: z.string(),
  declared: z.boolean().meta({ description: 'By this app; else it is of another one, or was.' }),
  epoch: z.int().meta({ description: 'Raised by every pause; 0 until it is first used.' }),
  pausedUntil: moment.optional(),
  rate: z.int().optional().meta({ description: 'As this app declares it, with per and burst.' }),
  per: z.number().optional().meta({ description: 'In milliseconds.' }),
  burst: z.int().optional().meta({ description: '0: an exact window.' }),
  stretch: z.number().optional().meta({
    description: 'How many times as long per is now, since the other side refused; it comes back by itself.',
  }),
  busyUntil: moment.optional().meta({ description: 'The last moment that was given to somebody who waits.' }),
})

export const limits: readonly ApiRoute[] = [
  route({
    method: 'GET',
    path: '/v1/limits',
    name: 'listLimits',
    tag: TAG,
    summary: 'By name: all that are declared, and up to 1,000 of keys that are in use.',
    role: 'read',
    params: NOTHING,
    query: z.strictObject({
      ...PAGE,
      cursor: z.string().max(200).default('').meta({ description: 'The `next` of the page before.' }),
    }),
    body: NOTHING,
    answer: pageOf(LIMIT),
    handle: async (app, { query: { cursor, limit } }) => {
      const { items } = await app.limits.list('', Number.MAX_SAFE_INTEGER)
      const placed = items.map((one) => ({ one, place: placeOf(one.name) })).filter(({ place }) => place > cursor)
      const page = placed.toSorted((a, b) => (a.place < b.place ? -1 : 1)).slice(0, limit)
      const next = placed.length > limit ? page.at(-1)?.place : undefined
      return { items: page.map(({ one }) => one), next }
    },
  }),
  route({
    method: 'GET',
    path: '/v1/limits/{name}',
    name: 'showLimit',
    tag: TAG,
    summary: 'Its numbers, whether it is paused or slowed down, and until when others wait for it.',
    role: 'read',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: LIMIT,
    handle: (app, { params }) => after(app, params.name, 'ok'),
  }),
  route({
    method: 'POST',
    path: '/v1/limits/{name}/pause',
    name: 'pauseLimit',
    tag: TAG,
    summary: 'For every process: no call is made under it for so long.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: z.strictObject({ for: duration, reason }),
    answer: LIMIT,
    audited: ({ params, body }) => `pause the limit ${params.name} for ${body.for}: ${body.reason}`,
    handle: async (app, { params, body }) => after(app, params.name, await app.limits.pause(params.name, body)),
  }),
  route({
    method: 'POST',
    path: '/v1/limits/{name}/resume',
    name: 'resumeLimit',
    tag: TAG,
    summary: 'Ends a pause, and the slowness after one.',
    role: 'operate',
    params: ONE,
    query: NOTHING,
    body: NOTHING,
    answer: LIMIT,
    audited: ({ params }) => `resume the limit ${params.name}`,
    handle: async (app, { params }) => after(app, params.name, await app.limits.resume(params.name)),
  }),
]

const SHOWN = 100

/** Where it is in the list. A name has up to 16 KB of a key in it, and an address must not. */
function placeOf(limit: string): string {
  return limit.length <= SHOWN ? limit : `${limit.slice(0, SHOWN).toWellFormed()}${hash('sha256', limit, 'base64url')}`
}

async function after(app: Operated, name: string, did: 'ok' | 'missing'): Promise<z.input<typeof LIMIT>> {
  const limit = did === 'missing' ? undefined : await app.limits.show(name)
  if (limit === undefined) throw missing('limit', name)
  return limit
}
