// `sluice endpoints`: the endpoints that deliveries post to.
import {
  reportMisuse,
  callAndPrint,
  callAndPrintPage,
  textOptions,
  YES_OPTION,
  type Command,
  type CommandContext,
} from '../command.ts'
import { confirmOrExit } from '../confirm.ts'
import { formatCount, escapeText, formatTime, type Column } from '../output.ts'
import { endpointActionCommands } from './endpoint-actions.ts'
import { ENDPOINT_OPTIONS, parseEndpointOptions, SECRET_FILE_OPTION, readSecret } from './endpoints-fields.ts'
import { endpointPath, ENDPOINTS_PATH } from './endpoints-paths.ts'
import { ENDPOINT_COLUMNS, toFields, type EndpointView } from './endpoint-output.ts'

interface CreatedEndpoint extends EndpointView, Secret {
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
  { title: 'at', cell: ({ createdAt }) => formatTime(createdAt) },
  { title: 'delivery', cell: ({ delivery }) => delivery },
  { title: 'status', cell: ({ status }) => status },
  { title: 'events', cell: ({ events }) => String(events) },
  { title: 'tries', cell: ({ attemptCount }) => String(attemptCount) },
  { title: 'error', cell: ({ lastError }) => lastError },
]

interface Secret {
  readonly secret: string
}

/** A secret that the user passed in is not printed again. */
function printSecret({ args: given, output: out }: CommandContext, { secret }: Secret): void {
  if (given.text('secret-file') !== undefined) return out.print('Done.')
  out.print(secret)
  out.note('The secret is not shown again.')
}

export const endpoints: readonly Command[] = [
  {
    name: 'endpoints list',
    description: 'list endpoints',
    run: (scene) =>
      callAndPrintPage(scene, { method: 'GET', path: ENDPOINTS_PATH }, (items: readonly EndpointView[]) =>
        scene.output.table(ENDPOINT_COLUMNS, items, 'There are no endpoints.'),
      ),
  },
  {
    name: 'endpoints show',
    positionals: ['<id>'],
    description: 'show an endpoint and its health',
    run: (scene) =>
      callAndPrint(scene, { method: 'GET', path: endpointPath(scene) }, (it: EndpointView) =>
        scene.output.fields(toFields(it)),
      ),
  },
  {
    name: 'endpoints create',
    positionals: ['<url>'],
    description: 'register an endpoint; its generated secret is shown once',
    options: { ...ENDPOINT_OPTIONS, ...textOptions({ tenant: 'only events of this tenant reach it' }) },
    run: (scene) => {
      const [url = ''] = scene.args.words
      const body = { url, ...scene.args.texts(['tenant']), ...parseEndpointOptions(scene.args) }
      return callAndPrint(scene, { method: 'POST', path: ENDPOINTS_PATH, body }, (made: CreatedEndpoint) => {
        scene.output.note(`The endpoint is ${made.id}.`)
        printSecret(scene, made)
        if (made.proofError !== undefined)
          scene.output.note(`The endpoint is not proven and gets nothing yet: ${escapeText(made.proofError)}`)
      })
    },
  },
  {
    name: 'endpoints update',
    positionals: ['<id>', '[url]'],
    description: 'change the given fields of an endpoint',
    options: ENDPOINT_OPTIONS,
    run: async (scene) => {
      const [, url] = scene.args.words
      const body = { ...(url !== undefined && { url }), ...parseEndpointOptions(scene.args) }
      if (Object.keys(body).length === 0) return reportMisuse(scene, 'Name at least one option, or a new URL.')
      return callAndPrint(scene, { method: 'PATCH', path: endpointPath(scene), body }, () =>
        scene.output.print('Done.'),
      )
    },
  },
  {
    name: 'endpoints deliveries',
    positionals: ['<id>'],
    description: 'list the deliveries to an endpoint, in progress and ended',
    options: textOptions({ limit: 'maximum number of items, 1 to 1000; default 100' }),
    run: (scene) => {
      const query = scene.args.texts(['limit'])
      return callAndPrintPage(
        scene,
        { method: 'GET', path: endpointPath(scene, 'deliveries'), query },
        (items: readonly Delivery[]) => scene.output.table(DELIVERIES, items, 'Nothing was delivered to it yet.'),
      )
    },
  },
  ...(['pause', 'resume'] as const).map((act): Command => ({
    name: `endpoints ${act}`,
    positionals: ['<id>'],
    description:
      act === 'pause' ? 'pause an endpoint: its events wait' : 'resume an endpoint: its waiting events are due at once',
    run: (scene) =>
      callAndPrint(scene, { method: 'POST', path: endpointPath(scene, act), body: {} }, () =>
        scene.output.print('Done.'),
      ),
  })),
  {
    name: 'endpoints rotate-secret',
    positionals: ['<id>'],
    description: 'replace the secret; the old one stays valid for a day',
    options: {
      'secret-file': SECRET_FILE_OPTION,
      force: { type: 'boolean', description: 'end the old secret at once' },
    },
    run: (scene) => {
      const body = { ...readSecret(scene.args), ...(scene.args.has('force') && { force: true }) }
      const call = { method: 'POST', path: endpointPath(scene, 'rotate-secret'), body } as const
      return callAndPrint(scene, call, (made: Secret) => printSecret(scene, made))
    },
  },
  {
    name: 'endpoints delete',
    positionals: ['<id>'],
    description: 'delete an endpoint and drop its waiting events',
    options: { yes: YES_OPTION },
    run: async (scene) => {
      const no = await confirmOrExit(
        scene,
        `The endpoint ${scene.args.words[0] ?? ''} is deleted, and its waiting events are dropped. Go on?`,
      )
      if (no !== undefined) return no
      return callAndPrint(
        scene,
        { method: 'DELETE', path: endpointPath(scene), body: {} },
        ({ dropped }: { readonly dropped: number }) =>
          scene.output.print(`Done. ${formatCount(dropped, 'event')} dropped.`),
      )
    },
  },
  {
    name: 'endpoints trigger',
    description: 'end every open window of deliveries now',
    run: (scene) =>
      callAndPrint(
        scene,
        { method: 'POST', path: '/v1/webhooks/trigger', body: {} },
        ({ triggered }: { readonly triggered: number }) =>
          scene.output.print(`${formatCount(triggered, 'batch', 'batches')} due.`),
      ),
  },
  ...endpointActionCommands,
]
