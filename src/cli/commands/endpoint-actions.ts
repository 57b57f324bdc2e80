// `sluice endpoints`: actions on one endpoint, i.e. test, verify, enable, replay, and create a token.
import type { EndpointStats } from '../../deliver/endpoint-stats.ts'
import type { EndpointReplayResult } from '../../deliver/endpoint-replay.ts'
import type { TestResult } from '../../deliver/test-event.ts'
import { toPath } from '../api-client.ts'
import {
  callAndConfirm,
  callAndPrint,
  confirmOrExit,
  reportMisuse,
  textOptions,
  YES_OPTION,
  type Command,
  type CommandContext,
} from '../command.ts'
import { EXIT } from '../exit.ts'
import { formatCount, formatTime, escapeText } from '../output.ts'

interface ProofResult {
  readonly proofError?: string
}

export const ENDPOINTS_PATH = '/v1/webhooks/subscribers'

/** `endpointPath` returns the path of the endpoint that the first argument names. */
export function endpointPath({ args }: CommandContext, act?: string): string {
  const [id = ''] = args.words
  const path = toPath(ENDPOINTS_PATH.slice(1), id)
  return act === undefined ? path : `${path}/${act}`
}

export const endpointActionCommands: readonly Command[] = [
  {
    name: 'endpoints test',
    positionals: ['<id>'],
    description: 'send a signed test event to one endpoint; exit code 1 if it was not delivered',
    run: (context) => {
      const { output } = context
      const call = { method: 'POST', path: endpointPath(context, 'test'), body: {} } as const
      const print = ({ delivered, status, ms, answer = '', error }: TestResult): void => {
        output.print(
          delivered ? `Delivered: ${status} after ${ms} ms.` : `Not delivered, after ${ms} ms: ${escapeText(error)}`,
        )
        if (answer !== '') output.note(escapeText(answer))
      }
      return callAndPrint(context, call, print, ({ delivered }) => (delivered ? EXIT.done : EXIT.failed))
    },
  },
  {
    name: 'endpoints enable',
    positionals: ['<id>'],
    description: 'enable a disabled endpoint',
    options: {
      ...textOptions({ from: 'backlog: deliver the waiting events; now: drop them, after a confirmation; required' }),
      yes: YES_OPTION,
    },
    run: async (context) => {
      const from = context.args.text('from')
      if (from === undefined)
        return reportMisuse(context, 'Pass --from=backlog to deliver the waiting events, or --from=now to drop them.')
      const no =
        from === 'now'
          ? await confirmOrExit(context, 'This drops the events that wait for the endpoint. Continue?')
          : undefined
      if (no !== undefined) return no
      const call = { method: 'POST', path: endpointPath(context, 'enable'), body: { from } } as const
      return callAndPrint(context, call, ({ dropped }: { readonly dropped: number }) =>
        context.output.print(from === 'now' ? `Done. ${formatCount(dropped, 'event')} dropped.` : 'Done.'),
      )
    },
  },
  {
    name: 'endpoints prove',
    positionals: ['<id>'],
    description: 'ask an endpoint to prove its ownership; exit code 1 if it does not',
    run: (context) => {
      const call = { method: 'POST', path: endpointPath(context, 'prove'), body: {} } as const
      const print = ({ proofError }: ProofResult): void =>
        context.output.print(
          proofError === undefined
            ? 'The endpoint has proven its ownership.'
            : `The endpoint did not prove its ownership: ${escapeText(proofError)}`,
        )
      return callAndPrint(context, call, print, ({ proofError }) =>
        proofError === undefined ? EXIT.done : EXIT.failed,
      )
    },
  },
  {
    name: 'endpoints replay',
    positionals: ['<id>'],
    description: 'retry dead letters of an endpoint; with --from, --to or --type, send it stored events again',
    options: {
      ...textOptions({
        'dead-letter': 'id of one dead letter; default all',
        from: 'events that arrived at or after this time, e.g. 2026-01-31T12:00:00Z; beginning for all',
        to: 'events that arrived before this time',
        type: 'events of this type',
        rate: 'maximum number of events in --per; default 100',
        per: 'period of --rate; default 1s',
      }),
      dead: { type: 'boolean', description: 'with --from, --to or --type: dead letters, not stored events' },
    },
    run: (context) => {
      const { args } = context
      const [rate, deadLetter] = [args.text('rate'), args.text('dead-letter')]
      const body = {
        ...args.texts(['from', 'to', 'type', 'per']),
        ...(rate !== undefined && { rate: Number(rate) }),
        ...(deadLetter !== undefined && { deadLetter }),
        ...(args.has('dead') && { dead: true }),
      }
      const call = { method: 'POST', path: endpointPath(context, 'replay'), body } as const
      return callAndPrint(context, call, ({ count, replay }: EndpointReplayResult) => {
        if (replay === undefined)
          return context.output.print(`${formatCount(count, 'batch', 'batches')} will be retried.`)
        context.output.print(`The replay ${replay} reads ${formatCount(count, 'event')}.`)
        return context.output.note(`Its progress: sluice replay show ${replay}`)
      })
    },
  },
  {
    name: 'endpoints stats',
    positionals: ['<id>'],
    description: 'show how the POSTs to an endpoint went, and what waits for it',
    options: textOptions({ hours: 'the last hours, 1 to 24; default 24' }),
    run: (context) => {
      const { output, args } = context
      const call = { method: 'GET', path: endpointPath(context, 'stats'), query: args.texts(['hours']) } as const
      return callAndPrint(context, call, (stats: EndpointStats) => {
        const { delivered, failed, dead, latencyMs, responseMs, waiting } = stats
        output.fields([
          ['since', formatTime(stats.since)],
          ['delivered', delivered],
          ['failed', failed],
          ['dead', dead],
          ['latency', formatPercentiles(latencyMs)],
          ['response', formatPercentiles(responseMs)],
          ['waiting', waiting.events],
          ['replayed', waiting.replayed],
          ['in progress', waiting.inProgress],
        ])
      })
    },
  },
  {
    name: 'endpoints token create',
    positionals: ['<id>'],
    description: 'create the token of an endpoint for its owner; shown once',
    run: (context) =>
      callAndPrint(
        context,
        { method: 'POST', path: endpointPath(context, 'token'), body: {} },
        ({ token }: { readonly token: string }) => {
          context.output.print(token)
          context.output.note('The token is not shown again. The old token is no longer valid.')
        },
      ),
  },
  {
    name: 'endpoints token revoke',
    positionals: ['<id>'],
    description: 'revoke the token of an endpoint',
    run: (context) => callAndConfirm(context, { method: 'DELETE', path: endpointPath(context, 'token'), body: {} }),
  },
]

function formatPercentiles(of: EndpointStats['latencyMs']): string | undefined {
  return of === undefined ? undefined : `p50 ${of.p50} ms, p95 ${of.p95} ms, p99 ${of.p99} ms`
}
