// `sluice endpoints`: whom deliveries go to.
import { show, showPage, texts, YES, type Command } from '../command.ts'
import { unconfirmed } from '../confirm.ts'
import { many, plain, time, type Column } from '../output.ts'
import { endpointActs } from './endpoints-acts.ts'
import { one, PATH } from './endpoints-paths.ts'

interface Endpoint {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly tenant: string
  readonly eventFilter: readonly string[]
  readonly active: boolean
  readonly proof: string
  readonly createdAt: number
  readonly lastSuccessfulDeliveryAt?: number
  readonly health: { readonly status: string; readonly why: string; readonly successRate?: number }
}

interface Added extends Endpoint {
  readonly secret: string
  readonly proofError?: string
}

interface Delivery {
  readonly delivery: string
  readonly status: string
  readonly events: number
  readonly attemptCount: number
  readonly createdAt: number
  readonly lastError: string
}

const ENDPOINTS: readonly Column<Endpoint>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'url', cell: ({ url }) => url },
  { title: 'wants', cell: ({ eventFilter }) => eventFilter.join(' ') },
  { title: 'tenant', cell: ({ tenant }) => tenant },
  { title: 'is', cell: ({ active, proof }) => (proof === 'pending' ? 'unproven' : active ? 'active' : 'paused') },
  { title: 'health', cell: ({ health }) => health.status },
  { title: 'delivered', cell: ({ health }) => percent(health.successRate) },
  { title: 'last', cell: ({ lastSuccessfulDeliveryAt: at }) => (at === undefined ? '' : time(at)) },
  { title: 'name', cell: ({ name }) => name },
]

const DELIVERIES: readonly Column<Delivery>[] = [
  { title: 'at', cell: ({ createdAt }) => time(createdAt) },
  { title: 'delivery', cell: ({ delivery }) => delivery },
  { title: 'status', cell: ({ status }) => status },
  { title: 'events', cell: ({ events }) => String(events) },
  { title: 'tries', cell: ({ attemptCount }) => String(attemptCount) },
  { title: 'error', cell: ({ lastError }) => lastError },
]

function percent(rate: number | undefined): string {
  return rate === undefined ? '' : `${Math.floor(rate * 100)} %`
}

const NO_SECOND_TIME = 'The secret is not shown again.'

export const endpoints: readonly Command[] = [
  {
    words: 'endpoints list',
    says: 'whom deliveries go to',
    run: (scene) =>
      showPage(scene, { method: 'GET', path: PATH }, (items: readonly Endpoint[]) =>
        scene.out.table(ENDPOINTS, items, 'There are no endpoints.'),
      ),
  },
  {
    words: 'endpoints add',
    takes: ['<url>'],
    says: 'registers one; its secret is shown now, and never again',
    options: texts({
      name: 'for people',
      types: 'what it wants, as order.*,invoice.paid; all unless said',
      tenant: 'only events of this tenant reach it',
      rate: 'so many POSTs at most',
      per: 'in so long, as 10s; 1s unless said',
    }),
    run: (scene) => {
      const [url = ''] = scene.given.words
      const types = scene.given.text('types')
      const [rate, per = '1s'] = [scene.given.text('rate'), scene.given.text('per')]
      const body = {
        url,
        ...scene.given.texts(['name', 'tenant']),
        ...(types !== undefined && { eventFilter: types.split(',') }),
        ...(rate !== undefined && { rate: { rate: Number(rate), per } }),
      }
      return show(scene, { method: 'POST', path: PATH, body }, (made: Added) => {
        scene.out.line(made.secret)
        scene.out.note(`The endpoint is ${made.id}. ${NO_SECOND_TIME}`)
        if (made.proofError !== undefined)
          scene.out.note(`It is not proven, and gets nothing yet: ${plain(made.proofError)}`)
      })
    },
  },
  {
    words: 'endpoints deliveries',
    takes: ['<id>'],
    says: 'what is under way to it, and what has ended',
    options: texts({ limit: 'how many at most, 1 to 1000; 100 unless said' }),
    run: (scene) => {
      const query = scene.given.texts(['limit'])
      return showPage(scene, { method: 'GET', path: one(scene, 'deliveries'), query }, (items: readonly Delivery[]) =>
        scene.out.table(DELIVERIES, items, 'Nothing was delivered to it yet.'),
      )
    },
  },
  ...(['pause', 'resume'] as const).map((act): Command => ({
    words: `endpoints ${act}`,
    takes: ['<id>'],
    says: act === 'pause' ? 'its events wait' : 'what waits is due at once',
    run: (scene) => show(scene, { method: 'POST', path: one(scene, act), body: {} }, () => scene.out.line('Done.')),
  })),
  {
    words: 'endpoints rotate-secret',
    takes: ['<id>'],
    says: 'another secret; the one before goes on for a day',
    run: (scene) =>
      show(
        scene,
        { method: 'POST', path: one(scene, 'rotate-secret'), body: {} },
        ({ secret }: { readonly secret: string }) => {
          scene.out.line(secret)
          scene.out.note(NO_SECOND_TIME)
        },
      ),
  },
  {
    words: 'endpoints remove',
    takes: ['<id>'],
    says: 'nothing is delivered to it any more; what waits is dropped',
    options: { yes: YES },
    run: async (scene) => {
      const no = await unconfirmed(
        scene,
        `The endpoint ${scene.given.words[0] ?? ''} is removed, with what waits for it. Go on?`,
      )
      if (no !== undefined) return no
      return show(
        scene,
        { method: 'DELETE', path: one(scene), body: {} },
        ({ dropped }: { readonly dropped: number }) => scene.out.line(`Done. ${many(dropped, 'event')} dropped.`),
      )
    },
  },
  {
    words: 'endpoints trigger',
    says: 'every open window of deliveries is over',
    run: (scene) =>
      show(
        scene,
        { method: 'POST', path: '/v1/webhooks/trigger', body: {} },
        ({ triggered }: { readonly triggered: number }) =>
          scene.out.line(`${many(triggered, 'batch', 'batches')} due.`),
      ),
  },
  ...endpointActs,
]
