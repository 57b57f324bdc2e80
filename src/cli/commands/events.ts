// `sluice events` and `sluice runs`: what came in, and how the work on it ended.
import { pathOf } from '../caller.ts'
import { PAGE, show, showPage, texts, type Command } from '../command.ts'
import { span, time, type Column, type Output } from '../output.ts'

interface Event {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly arrived: number
  readonly subject: string
  readonly tenant: string
  readonly bytes: number
  readonly duplicates: number
}

interface WholeEvent extends Event {
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

const EVENTS: readonly Column<Event>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'arrived', cell: ({ arrived }) => time(arrived) },
  { title: 'source/type', cell: ({ source, type }) => `${source}/${type}` },
  { title: 'subject', cell: ({ subject }) => subject },
  { title: 'bytes', cell: ({ bytes }) => bytes },
]

const RUNS: readonly Column<Run>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'flow', cell: ({ flow }) => flow },
  { title: 'key', cell: ({ key }) => key },
  { title: 'end', cell: ({ kind }) => kind },
  { title: 'started', cell: ({ started }) => time(started) },
  { title: 'took', cell: ({ started, ended }) => span(Math.max(0, ended - started)) },
  { title: 'failed', cell: ({ attempts }) => attempts.length },
  { title: 'events', cell: ({ events }) => events.length },
]

const TIMES = { from: 'since then, as 2026-01-31T12:00:00Z', to: 'before then' } as const

export const events: readonly Command[] = [
  {
    words: 'events list',
    says: 'stored events, newest first',
    options: {
      ...texts({ source: 'of this source', type: 'of this type', tenant: 'of this tenant' }),
      ...texts({ flow: 'together with --key: of that lane', key: 'together with --flow', ...TIMES }),
      ...PAGE,
    },
    run: (scene) => {
      const names = ['source', 'type', 'tenant', 'flow', 'key', 'from', 'to', 'limit', 'cursor']
      const call = { method: 'GET', path: '/v1/events', query: scene.given.texts(names) } as const
      return showPage(scene, call, (items: readonly Event[]) =>
        scene.out.table(EVENTS, items, 'There are no such events.'),
      )
    },
  },
  {
    words: 'events show',
    takes: ['<id>'],
    says: 'one event, with its body, its request, its lanes and its runs',
    run: (scene) => {
      const path = pathOf('v1/events', scene.given.words[0] ?? '')
      return show(scene, { method: 'GET', path }, (event: WholeEvent) => printEvent(scene.out, event))
    },
  },
]

function printEvent(out: Output, event: WholeEvent): void {
  out.fields([
    ['id', event.id],
    ['source', event.source],
    ['type', event.type],
    ['arrived', time(event.arrived)],
    ['subject', event.subject === '' ? undefined : event.subject],
    ['tenant', event.tenant === '' ? undefined : event.tenant],
    ['duplicates', event.duplicates],
    ['request', event.request && `${event.request.method} ${event.request.url} from ${event.request.address}`],
  ])
  for (const lane of event.lanes) {
    out.fields([['lane', `${lane.id}  ${lane.state}  ${lane.flow ?? ''} ${lane.key ?? ''}`.trimEnd()]])
  }
  for (const run of event.runs) out.fields([['run', `${run.id}  ${run.flow}  ${run.kind}  ${time(run.ended)}`]])
  out.fields([[event.body.kind === 'text' ? 'body' : 'body (base64)', event.body.text]])
}

export const runs: readonly Command[] = [
  {
    words: 'runs list',
    says: 'runs that have ended, newest first',
    options: {
      ...texts({ flow: 'of this flow', key: 'together with --flow', tenant: 'of this tenant', ...TIMES }),
      ...PAGE,
    },
    run: (scene) => {
      const query = scene.given.texts(['flow', 'key', 'tenant', 'from', 'to', 'limit', 'cursor'])
      return showPage(scene, { method: 'GET', path: '/v1/runs', query }, (items: readonly Run[]) =>
        scene.out.table(RUNS, items, 'No such run has ended.'),
      )
    },
  },
  {
    words: 'runs show',
    takes: ['<id>'],
    says: 'one run that has ended, with its attempts',
    run: (scene) => {
      const path = pathOf('v1/runs', scene.given.words[0] ?? '')
      return show(scene, { method: 'GET', path }, (run: Run) => {
        scene.out.fields([
          ['id', run.id],
          ['flow', run.flow],
          ['key', run.key],
          ['end', run.reason === '' ? run.kind : `${run.kind}: ${run.reason}`],
          ['started', time(run.started)],
          ['ended', time(run.ended)],
          ...run.attempts.map(({ at, ms, error }) => ['failed', `${time(at)}, after ${span(ms)}: ${error}`] as const),
          ...run.events.map((id) => ['event', id] as const),
        ])
      })
    },
  },
]
