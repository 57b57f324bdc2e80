// `sluice events` and `sluice runs`: the stored events, and how their runs ended.
import { toPath } from '../api-client.ts'
import { PAGE_OPTIONS, callAndPrint, callAndPrintPage, textOptions, type Command } from '../command.ts'
import { formatDuration, formatTime, type Column, type Output } from '../output.ts'

interface Event {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly arrived: number
  readonly subject: string
  readonly tenant: string
  readonly bytes: number
  readonly duplicates: number
  readonly note: string
}

export interface EventDetails extends Event {
  readonly body: { readonly kind: 'text' | 'base64'; readonly text: string }
  readonly request?: { readonly method: string; readonly url: string; readonly address: string }
  readonly lanes: readonly {
    readonly id: string
    readonly state: string
    readonly flow?: string
    readonly key?: string
  }[]
  readonly runs: readonly {
    readonly id: string
    readonly lane: string
    readonly flow: string
    readonly kind: string
    readonly ended: number
  }[]
}

interface Run {
  readonly id: string
  readonly flow: string
  readonly key: string
  readonly kind: string
  readonly reason: string
  readonly started: number
  readonly ended: number
  readonly tries: number
  readonly events: readonly string[]
  readonly attempts: readonly { readonly at: number; readonly ms: number; readonly error: string }[]
}

const EVENT_COLUMNS: readonly Column<Event>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'arrived', cell: ({ arrived }) => formatTime(arrived) },
  { title: 'source/type', cell: ({ source, type }) => `${source}/${type}` },
  { title: 'subject', cell: ({ subject }) => subject },
  { title: 'bytes', cell: ({ bytes }) => bytes },
  { title: 'note', cell: ({ note }) => note },
]

const RUN_COLUMNS: readonly Column<Run>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'flow', cell: ({ flow }) => flow },
  { title: 'key', cell: ({ key }) => key },
  { title: 'end', cell: ({ kind }) => kind },
  { title: 'started', cell: ({ started }) => formatTime(started) },
  { title: 'took', cell: ({ started, ended }) => formatDuration(Math.max(0, ended - started)) },
  { title: 'failed', cell: ({ attempts }) => attempts.length },
  { title: 'events', cell: ({ events }) => events.length },
]

const TIME_OPTIONS = { from: 'since then, as 2026-01-31T12:00:00Z', to: 'before then' } as const

export const events: readonly Command[] = [
  {
    name: 'events list',
    description: 'list stored events, newest first',
    options: {
      ...textOptions({ source: 'of this source', type: 'of this type', tenant: 'of this tenant' }),
      ...textOptions({ flow: 'together with --key: of that lane', key: 'together with --flow', ...TIME_OPTIONS }),
      ...PAGE_OPTIONS,
    },
    run: (scene) => {
      const names = ['source', 'type', 'tenant', 'flow', 'key', 'from', 'to', 'limit', 'cursor']
      const call = { method: 'GET', path: '/v1/events', query: scene.args.texts(names) } as const
      return callAndPrintPage(scene, call, (items: readonly Event[]) =>
        scene.output.table(EVENT_COLUMNS, items, 'There are no such events.'),
      )
    },
  },
  {
    name: 'events show',
    positionals: ['<id>'],
    description: 'show an event with its body, request, lanes and runs',
    run: (scene) => {
      const path = toPath('v1/events', scene.args.words[0] ?? '')
      return callAndPrint(scene, { method: 'GET', path }, (event: EventDetails) => printEvent(scene.output, event))
    },
  },
]

function printEvent(out: Output, event: EventDetails): void {
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
  {
    name: 'runs list',
    description: 'list ended runs, newest first',
    options: {
      ...textOptions({ flow: 'of this flow', key: 'together with --flow', tenant: 'of this tenant', ...TIME_OPTIONS }),
      ...PAGE_OPTIONS,
    },
    run: (scene) => {
      const query = scene.args.texts(['flow', 'key', 'tenant', 'from', 'to', 'limit', 'cursor'])
      return callAndPrintPage(scene, { method: 'GET', path: '/v1/runs', query }, (items: readonly Run[]) =>
        scene.output.table(RUN_COLUMNS, items, 'No such run has ended.'),
      )
    },
  },
  {
    name: 'runs show',
    positionals: ['<id>'],
    description: 'show an ended run with its attempts',
    run: (scene) => {
      const path = toPath('v1/runs', scene.args.words[0] ?? '')
      return callAndPrint(scene, { method: 'GET', path }, (run: Run) => {
        scene.output.fields([
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
