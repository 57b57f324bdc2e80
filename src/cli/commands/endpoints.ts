// `sluice endpoints`: the endpoints that deliveries post to.
import type { DeliveryRecord } from '../../deliver/deliveries.ts'
import type { CreatedEndpoint, EndpointWithHealth } from '../../deliver/endpoints.ts'
import {
  callAndConfirm,
  callAndPrint,
  confirmOrExit,
  listCommand,
  reportMisuse,
  textOptions,
  YES_OPTION,
  type Command,
  type CommandContext,
} from '../command.ts'
import { formatCount, escapeText, formatTime, type Field } from '../output.ts'
import { endpointActionCommands, endpointPath, ENDPOINTS_PATH } from './endpoint-actions.ts'
import { endpointTransformCommands } from './endpoint-transform.ts'
import { ENDPOINT_OPTIONS, parseEndpointOptions, SECRET_FILE_OPTION, readSecret } from './endpoints-fields.ts'

interface Secret {
  readonly secret: string
}

/** A secret that the user passed in is not printed again. */
function printSecret({ args, output }: CommandContext, { secret }: Secret): void {
  if (args.text('secret-file') !== undefined) return output.print('Done.')
  output.print(secret)
  output.note('The secret is not shown again.')
}

export const endpoints: readonly Command[] = [
  listCommand<EndpointWithHealth>({
    name: 'endpoints list',
    description: 'list endpoints',
    path: ENDPOINTS_PATH,
    columns: [
      'id',
      'url',
      { title: 'wants', cell: ({ eventFilter }) => eventFilter.join(' ') },
      'tenant',
      { title: 'is', cell: describeState },
      { title: 'health', cell: ({ health }) => health.status },
      { title: 'delivered', cell: ({ health }) => formatPercent(health.successRate) },
      {
        title: 'last',
        cell: ({ lastSuccessfulDeliveryAt }) =>
          lastSuccessfulDeliveryAt === undefined ? '' : formatTime(lastSuccessfulDeliveryAt),
      },
      'name',
    ],
    none: 'There are no endpoints.',
  }),
  {
    name: 'endpoints show',
    positionals: ['<id>'],
    description: 'show an endpoint and its health',
    run: (context) =>
      callAndPrint(context, { method: 'GET', path: endpointPath(context) }, (it: EndpointWithHealth) =>
        context.output.fields(toFields(it)),
      ),
  },
  {
    name: 'endpoints create',
    positionals: ['<url>'],
    description: 'register an endpoint; its generated secret is shown once',
    options: {
      ...ENDPOINT_OPTIONS,
      ...textOptions({
        tenant: 'only events of this tenant reach it',
        from: 'stored events to send first: now (default, none), beginning, or a time, e.g. 2026-01-31T12:00:00Z',
      }),
    },
    run: (context) => {
      const [url = ''] = context.args.words
      const body = { url, ...context.args.texts(['tenant']), ...parseEndpointOptions(context.args) }
      return callAndPrint(context, { method: 'POST', path: ENDPOINTS_PATH, body }, (made: CreatedEndpoint) => {
        context.output.note(`The endpoint is ${made.id}.`)
        printSecret(context, made)
        if (made.note !== undefined) context.output.note(made.note)
        if (made.proofError !== undefined)
          context.output.note(
            `The endpoint has not proven its ownership, so it receives no events yet: ${escapeText(made.proofError)}`,
          )
      })
    },
  },
  {
    name: 'endpoints update',
    positionals: ['<id>', '[url]'],
    description: 'change the given fields of an endpoint',
    options: ENDPOINT_OPTIONS,
    run: async (context) => {
      const [, url] = context.args.words
      const body = { ...(url !== undefined && { url }), ...parseEndpointOptions(context.args) }
      if (Object.keys(body).length === 0) return reportMisuse(context, 'Pass at least one option, or a new URL.')
      return callAndConfirm(context, { method: 'PATCH', path: endpointPath(context), body })
    },
  },
  listCommand<DeliveryRecord>({
    name: 'endpoints deliveries',
    positionals: ['<id>'],
    description: 'list the deliveries to an endpoint, in progress and ended',
    options: textOptions({ limit: 'maximum number of items, 1 to 1000; default 100' }),
    path: (context) => endpointPath(context, 'deliveries'),
    columns: [
      { title: 'at', cell: ({ createdAt }) => formatTime(createdAt) },
      'delivery',
      'status',
      'events',
      { title: 'tries', cell: ({ attemptCount }) => attemptCount },
      { title: 'error', cell: ({ lastError }) => lastError },
    ],
    none: 'There are no deliveries to this endpoint yet.',
  }),
  ...(['pause', 'resume'] as const).map((act): Command => ({
    name: `endpoints ${act}`,
    positionals: ['<id>'],
    description:
      act === 'pause' ? 'pause an endpoint: its events wait' : 'resume an endpoint: its waiting events are due at once',
    run: (context) => callAndConfirm(context, { method: 'POST', path: endpointPath(context, act), body: {} }),
  })),
  {
    name: 'endpoints rotate-secret',
    positionals: ['<id>'],
    description: 'replace the secret; the old one stays valid for a day',
    options: {
      'secret-file': SECRET_FILE_OPTION,
      force: { type: 'boolean', description: 'end the old secret at once' },
    },
    run: (context) => {
      const body = { ...readSecret(context.args), ...(context.args.has('force') && { force: true }) }
      const call = { method: 'POST', path: endpointPath(context, 'rotate-secret'), body } as const
      return callAndPrint(context, call, (made: Secret) => printSecret(context, made))
    },
  },
  {
    name: 'endpoints delete',
    positionals: ['<id>'],
    description: 'delete an endpoint and drop its waiting events',
    options: { yes: YES_OPTION },
    run: async (context) => {
      const no = await confirmOrExit(
        context,
        `This deletes the endpoint ${context.args.words[0] ?? ''} and drops its waiting events. Continue?`,
      )
      if (no !== undefined) return no
      return callAndPrint(
        context,
        { method: 'DELETE', path: endpointPath(context), body: {} },
        ({ dropped }: { readonly dropped: number }) =>
          context.output.print(`Done. ${formatCount(dropped, 'event')} dropped.`),
      )
    },
  },
  {
    name: 'endpoints trigger',
    description: 'end every open window of deliveries now',
    run: (context) =>
      callAndPrint(
        context,
        { method: 'POST', path: '/v1/webhooks/trigger', body: {} },
        ({ triggered }: { readonly triggered: number }) =>
          context.output.print(`${formatCount(triggered, 'batch', 'batches')} due.`),
      ),
  },
  ...endpointActionCommands,
  ...endpointTransformCommands,
]

function describeState({ active, proof }: EndpointWithHealth): string {
  return proof === 'pending' ? 'unproven' : active ? 'active' : 'paused'
}

function toFields(it: EndpointWithHealth): readonly Field[] {
  const { signing, rate, health } = it
  return [
    ['id', it.id],
    ['url', it.url],
    ['name', nonEmpty(it.name)],
    ['description', nonEmpty(it.description)],
    ['tenant', nonEmpty(it.tenant)],
    ['wants', it.eventFilter.join(' ')],
    ['where', it.where === null ? undefined : JSON.stringify(it.where)],
    ['is', describeState(it)],
    ['signing', Object.values(signing).filter(Boolean).join(':')],
    ['form', formatForm(it.form)],
    ['transformation', it.transform === null ? undefined : `version ${it.transform}`],
    ['headers', nonEmpty(it.headers.join(' '))],
    ['rate', rate === null ? undefined : `${rate.rate} in ${rate.per}`],
    ['disabled after', it.disableAfter === null ? 'never' : String(it.disableAfter)],
    ['added', formatTime(it.createdAt)],
    ['history', it.history === undefined ? undefined : `is being sent by the replay ${it.history.replay}`],
    ['health', `${health.status} ${health.why}`.trimEnd()],
    ['delivered', nonEmpty(formatPercent(health.successRate))],
    ['last', formatTime(it.lastSuccessfulDeliveryAt)],
  ]
}

/** `formatForm` writes a form as `--form` takes it. */
function formatForm(form: EndpointWithHealth['form']): string {
  if (typeof form === 'string') return form
  if (form.kind === 'cloudevents') return `cloudevents:${form.mode}`
  return `events:${Object.entries(form.fields)
    .map(([name, path]) => `${name}=${path}`)
    .join(',')}`
}

function nonEmpty(text: string): string | undefined {
  return text === '' ? undefined : text
}

function formatPercent(rate: number | undefined): string {
  return rate === undefined ? '' : `${Math.floor(rate * 100)} %`
}
