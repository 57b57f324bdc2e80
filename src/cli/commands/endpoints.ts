// `sluice endpoints`: whom deliveries go to.
import { misused, show, showPage, texts, YES, type Command, type Scene } from '../command.ts'
import { unconfirmed } from '../confirm.ts'
import { many, plain, time, type Column } from '../output.ts'
import { endpointActs } from './endpoints-acts.ts'
import { FIELDS, fieldsIn, SECRET_FILE, secretIn } from './endpoints-fields.ts'
import { one, PATH } from './endpoints-paths.ts'
import { ENDPOINTS, fieldsOf, type Endpoint } from './endpoints-shown.ts'

interface Added extends Endpoint, Secret {
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

const DELIVERIES: readonly Column<Delivery>[] = [
  { title: 'at', cell: ({ createdAt }) => time(createdAt) },
  { title: 'delivery', cell: ({ delivery }) => delivery },
  { title: 'status', cell: ({ status }) => status },
  { title: 'events', cell: ({ events }) => String(events) },
  { title: 'tries', cell: ({ attemptCount }) => String(attemptCount) },
  { title: 'error', cell: ({ lastError }) => lastError },
]

interface Secret {
  readonly secret: string
}

/** Who gave it has it. */
function tellSecret({ given, out }: Scene, { secret }: Secret): void {
  if (given.text('secret-file') !== undefined) return out.line('Done.')
  out.line(secret)
  out.note('The secret is not shown again.')
}

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
    words: 'endpoints show',
    takes: ['<id>'],
    says: 'one of them, and how it fares',
    run: (scene) => show(scene, { method: 'GET', path: one(scene) }, (it: Endpoint) => scene.out.fields(fieldsOf(it))),
  },
  {
    words: 'endpoints add',
    takes: ['<url>'],
    says: 'registers one; a secret that is made is shown now, and never again',
    options: { ...FIELDS, ...texts({ tenant: 'only events of this tenant reach it' }) },
    run: (scene) => {
      const [url = ''] = scene.given.words
      const body = { url, ...scene.given.texts(['tenant']), ...fieldsIn(scene.given) }
      return show(scene, { method: 'POST', path: PATH, body }, (made: Added) => {
        scene.out.note(`The endpoint is ${made.id}.`)
        tellSecret(scene, made)
        if (made.proofError !== undefined)
          scene.out.note(`It is not proven, and gets nothing yet: ${plain(made.proofError)}`)
      })
    },
  },
  {
    words: 'endpoints change',
    takes: ['<id>', '[url]'],
    says: 'what is not named stays as it is; pause and resume are commands of their own',
    options: FIELDS,
    run: async (scene) => {
      const [, url] = scene.given.words
      const body = { ...(url !== undefined && { url }), ...fieldsIn(scene.given) }
      if (Object.keys(body).length === 0) return misused(scene, 'Say what is to be changed.')
      return show(scene, { method: 'PATCH', path: one(scene), body }, () => scene.out.line('Done.'))
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
    options: {
      'secret-file': SECRET_FILE,
      force: { type: 'boolean', says: 'the new one is alone at once' },
    },
    run: (scene) => {
      const body = { ...secretIn(scene.given), ...(scene.given.is('force') && { force: true }) }
      const call = { method: 'POST', path: one(scene, 'rotate-secret'), body } as const
      return show(scene, call, (made: Secret) => tellSecret(scene, made))
    },
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
