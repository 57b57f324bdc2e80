// `sluice events` and `sluice runs`: the stored events, and how their runs ended.
import type { StoredEvent, StoredEventDetails } from '../../admin/stored-events.ts'
import type { RunRecord } from '../../store/contract/index.ts'
import { toPath } from '../api-client.ts'
import { callAndPrint, listCommand, PAGE_OPTIONS, textOptions, type Command } from '../command.ts'
import { formatDuration, formatTime, type Output } from '../output.ts'

const TIME_OPTIONS = { from: 'from this time on, e.g. 2026-01-31T12:00:00Z', to: 'before this time' } as const

export const events: readonly Command[] = [
  listCommand<StoredEvent>({
    name: 'events list',
    description: 'list stored events, newest first',
    options: {
      ...textOptions({ source: 'events of this source', type: 'events of this type', tenant: 'of this tenant' }),
      ...textOptions({ subject: 'events of this subject, e.g. a user' }),
      ...textOptions({ flow: 'requires --key: events of that lane', key: 'requires --flow', ...TIME_OPTIONS }),
      ...PAGE_OPTIONS,
    },
    path: '/v1/events',
    columns: [
      'id',
      { title: 'arrived', cell: ({ arrived }) => formatTime(arrived) },
      { title: 'source/type', cell: ({ source, type }) => `${source}/${type}` },
      'subject',
      'bytes',
      'note',
    ],
    none: 'There are no events.',
  }),
  {
    name: 'events show',
    positionals: ['<id>'],
    description: 'show an event with its body, request, lanes and runs',
    run: (context) => {
      const path = toPath('v1/events', context.args.words[0] ?? '')
      return callAndPrint(context, { method: 'GET', path }, (event: StoredEventDetails) =>
        printEvent(context.output, event),
      )
    },
  },
]

function printEvent(out: Output, event: StoredEventDetails): void {
  out.fields([
    ['id', event.id],
    ['source', event.source],
    ['type', event.type],
    ['arrived', formatTime(event.arrived)],
    ['subject', event.subject === '' ? undefined : event.subject],
    ['tenant', event.tenant === '' ? undefined : event.tenant],
    ['duplicates', event.duplicates],
    ['note', event.note === '' ? undefined : event.note],
    ['request', event.request && `${event.request.method} ${event.request.url} from ${event.request.address}`],
  ])
  for (const lane of event.lanes) {
    out.fields([['lane', `${lane.id}  ${lane.state}  ${lane.flow ?? ''} ${lane.key ?? ''}`.trimEnd()]])
  }
  for (const run of event.runs) out.fields([['run', `${run.id}  ${run.flow}  ${run.kind}  ${formatTime(run.ended)}`]])
  out.fields([[event.body.kind === 'text' ? 'body' : 'body (base64)', event.body.text]])
}

export const runs: readonly Command[] = [
  listCommand<RunRecord>({
    name: 'runs list',
    description: 'list ended runs, newest first',
    options: {
      ...textOptions({ flow: 'runs of this flow', key: 'requires --flow', tenant: 'of this tenant', ...TIME_OPTIONS }),
      ...PAGE_OPTIONS,
    },
    path: '/v1/runs',
    columns: [
      'id',
      'flow',
      'key',
      { title: 'end', cell: ({ kind }) => kind },
      { title: 'started', cell: ({ started }) => formatTime(started) },
      { title: 'took', cell: ({ started, ended }) => formatDuration(Math.max(0, ended - started)) },
      { title: 'failed', cell: ({ attempts }) => attempts.length },
      { title: 'events', cell: (run) => run.events.length },
    ],
    none: 'There are no ended runs.',
  }),
  {
    name: 'runs show',
    positionals: ['<id>'],
    description: 'show an ended run with its attempts',
    run: (context) => {
      const path = toPath('v1/runs', context.args.words[0] ?? '')
      return callAndPrint(context, { method: 'GET', path }, (run: RunRecord) => {
        context.output.fields([
          ['id', run.id],
          ['flow', run.flow],
          ['key', run.key],
          ['end', run.reason === '' ? run.kind : `${run.kind}: ${run.reason}`],
          ['started', formatTime(run.started)],
          ['ended', formatTime(run.ended)],
          ...run.attempts.map(
            ({ at, ms, error }) => ['failed', `${formatTime(at)}, after ${formatDuration(ms)}: ${error}`] as const,
          ),
          ...run.events.map((id) => ['event', id] as const),
        ])
      })
    },
  },
]
