// `sluice flows` and `sluice limits`: what each holds, and the pause that a person makes.
import { pathOf } from '../caller.ts'
import { PAGE, show, showPage, texts, type Command } from '../command.ts'
import { time, type Column } from '../output.ts'
import { steer } from './lanes.ts'

interface Flow {
  readonly flow: string
  readonly lanes: number
  readonly live: number
  readonly due?: number
  readonly paused?: { readonly reason: string; readonly by: string }
}

interface Limit {
  readonly name: string
  readonly declared: boolean
  readonly pausedUntil?: number
}

const FLOWS: readonly Column<Flow>[] = [
  { title: 'flow', cell: ({ flow }) => flow },
  { title: 'lanes', cell: ({ lanes }) => lanes },
  { title: 'running', cell: ({ live }) => live },
  { title: 'next due', cell: ({ due }) => time(due) },
  { title: 'paused', cell: ({ paused }) => paused && `by ${paused.by}: ${paused.reason}` },
]

const LIMITS: readonly Column<Limit>[] = [
  { title: 'limit', cell: ({ name }) => name },
  { title: 'declared', cell: ({ declared }) => (declared ? 'here' : 'elsewhere') },
  { title: 'paused until', cell: ({ pausedUntil }) => pausedUntil && endOf(pausedUntil) },
]

/** A pause that outlasts the calendar ends by hand alone. */
function endOf(pausedUntil: number): string {
  return time(pausedUntil) ?? 'somebody resumes it'
}

const REASON = { reason: 'why; it is shown to whoever asks' } as const

export const flows: readonly Command[] = [
  {
    words: 'flows list',
    says: 'all flows, with what they hold',
    run: (scene) =>
      showPage(scene, { method: 'GET', path: '/v1/flows' }, (items: readonly Flow[]) =>
        scene.out.table(FLOWS, items, 'There are no flows.'),
      ),
  },
  {
    words: 'flows pause',
    takes: ['<flow>'],
    says: 'begin nothing of a flow; arrivals and windows go on',
    options: texts(REASON),
    run: (scene) => {
      const [flow = ''] = scene.given.words
      return steer(scene, pathOf('v1/flows', flow, 'pause'), { reason: scene.given.text('reason') ?? 'by hand' })
    },
  },
  {
    words: 'flows resume',
    takes: ['<flow>'],
    says: 'begin again with what is due',
    run: (scene) => steer(scene, pathOf('v1/flows', scene.given.words[0] ?? '', 'resume'), {}),
  },
]

export const limits: readonly Command[] = [
  {
    words: 'limits list',
    says: 'all limits, and which are paused',
    options: PAGE,
    run: (scene) => {
      const query = scene.given.texts(['limit', 'cursor'])
      return showPage(scene, { method: 'GET', path: '/v1/limits', query }, (items: readonly Limit[]) =>
        scene.out.table(LIMITS, items, 'There are no limits.'),
      )
    },
  },
  {
    words: 'limits pause',
    takes: ['<limit>'],
    says: 'make no call under a limit for so long, in any process',
    options: texts({ ...REASON, for: 'how long, as 10m; 10m unless said' }),
    run: (scene) => {
      const [name = ''] = scene.given.words
      const body = { for: '10m', reason: 'by hand', ...scene.given.texts(['for', 'reason']) }
      const call = { method: 'POST', path: pathOf('v1/limits', name, 'pause'), body } as const
      return show(scene, call, ({ pausedUntil = 0 }: Limit) => scene.out.line(`Paused until ${endOf(pausedUntil)}.`))
    },
  },
  {
    words: 'limits resume',
    takes: ['<limit>'],
    says: 'end a pause, and the slowness after one',
    run: (scene) => {
      const path = pathOf('v1/limits', scene.given.words[0] ?? '', 'resume')
      return show(scene, { method: 'POST', path, body: {} }, () => scene.out.line('Done.'))
    },
  },
]
