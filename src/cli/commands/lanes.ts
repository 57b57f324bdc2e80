// `sluice lanes` and `sluice explain`: where the events of a key are, why, and what a person can do about it.
import { pathOf } from '../caller.ts'
import { ended } from '../problem.ts'
import { ask, misused, PAGE, show, showPage, texts, YES, type Command, type Page, type Scene } from '../command.ts'
import { unconfirmed } from '../confirm.ts'
import { EXIT, type Exit } from '../exit.ts'
import { plainLines, time, type Column } from '../output.ts'

interface Lane {
  readonly id: string
  readonly flow: string
  readonly key: string
  readonly tenant: string
  readonly state: string
  readonly due?: number
  readonly waiting: number
  readonly replays: number
  readonly blocks: number
  readonly hold?: { readonly reason: string; readonly by: string; readonly until?: number }
  readonly run?: { readonly id: string; readonly state: string; readonly events: number; readonly tries: number }
}

const COLUMNS: readonly Column<Lane>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'flow', cell: ({ flow }) => flow },
  { title: 'key', cell: ({ key }) => key },
  { title: 'state', cell: ({ state }) => state },
  { title: 'waiting', cell: ({ waiting }) => waiting },
  { title: 'in run', cell: ({ run }) => run?.events },
  { title: 'due', cell: ({ due }) => time(due) },
]

const LANE = ['<id or flow>', '[key]'] as const

export const explain: Command = {
  words: 'explain',
  takes: ['<flow>', '<key>'],
  says: 'why the events of a key are where they are',
  run: (scene) => {
    const [flow = '', key = ''] = scene.given.words
    const call = { method: 'GET', path: '/v1/explain', query: { flow, key } } as const
    return show(scene, call, ({ text }: { readonly text: string }) => scene.out.line(plainLines(text)))
  },
}

const list: Command = {
  words: 'lanes list',
  says: 'lanes with something in them, newest first',
  options: { ...texts({ flow: 'of this flow', key: 'together with --flow', tenant: 'of this tenant' }), ...PAGE },
  run: (scene) => {
    const query = scene.given.texts(['flow', 'key', 'tenant', 'limit', 'cursor'])
    return showPage(scene, { method: 'GET', path: '/v1/lanes', query }, (lanes: readonly Lane[]) =>
      scene.out.table(COLUMNS, lanes, 'No lane has anything in it.'),
    )
  },
}

const one: Command = {
  words: 'lanes show',
  takes: LANE,
  says: 'one lane, by its id or by flow and key',
  run: (scene) =>
    ofLane(scene, (id) =>
      show(scene, { method: 'GET', path: pathOf('v1/lanes', id) }, (lane: Lane) =>
        scene.out.fields([
          ['id', lane.id],
          ['flow', lane.flow],
          ['key', lane.key],
          ['tenant', lane.tenant === '' ? undefined : lane.tenant],
          ['state', lane.state],
          ['due', time(lane.due)],
          ['waiting', lane.waiting],
          ['replays', lane.replays],
          ['blocked by', lane.blocks === 0 ? undefined : `${lane.blocks} dead letters`],
          ['held', lane.hold && `by ${lane.hold.by}: ${lane.hold.reason}`],
          ['held until', time(lane.hold?.until)],
          ['run', lane.run && `${lane.run.id}, ${lane.run.state}, ${lane.run.events} events, ${lane.run.tries} tries`],
        ]),
      ),
    ),
}

const ACTS = {
  'run-now': { says: 'end its window, and its wait for another attempt', asks: undefined },
  cancel: { says: 'ask its run to give up; the events wait again', asks: undefined },
  drop: { says: 'end what waits in it, without a run', asks: 'What waits in the lane is dropped.' },
  unhold: { says: 'end its hold', asks: undefined },
} as const

const acts: readonly Command[] = (['run-now', 'cancel', 'drop', 'unhold'] as const).map((act) => ({
  words: `lanes ${act}`,
  takes: LANE,
  says: ACTS[act].says,
  ...(ACTS[act].asks !== undefined && { options: { yes: YES } }),
  run: (scene) =>
    ofLane(scene, async (id) => {
      const { asks } = ACTS[act]
      const no = asks === undefined ? undefined : await unconfirmed(scene, `${asks} Go on?`)
      if (no !== undefined) return no
      return steer(scene, pathOf('v1/lanes', id, act), {})
    }),
}))

const hold: Command = {
  words: 'lanes hold',
  takes: LANE,
  says: 'begin nothing of it until the hold ends',
  options: texts({ reason: 'why; it is shown to whoever asks', for: 'how long, as 10m; until unhold unless said' }),
  run: (scene) => {
    const body = { reason: 'by hand', ...scene.given.texts(['reason', 'for']) }
    return ofLane(scene, (id) => steer(scene, pathOf('v1/lanes', id, 'hold'), body))
  },
}

export const lanes: readonly Command[] = [list, one, ...acts, hold]

const RESULTS = {
  ok: 'Done.',
  already: 'Nothing to do: it is so already.',
  missing: 'Nothing to do: there is none any more.',
  running: 'Not done: a run is under way.',
} as const

/** What a run keeps from being done has failed, also if the API has an answer to it. */
export async function steer(scene: Scene, path: string, body: object): Promise<Exit> {
  const { out } = scene
  const answer = await ask(scene, { method: 'POST', path, body })
  if (answer.kind !== 'done') return ended(out, answer)
  const { result } = answer.value as { readonly result: keyof typeof RESULTS }
  if (out.asJson) out.answer(answer.value)
  else out.line(RESULTS[result])
  return result === 'running' ? EXIT.failed : EXIT.done
}

/** People know flow and key; the API goes by ids. */
async function ofLane(scene: Scene, act: (id: string) => Promise<Exit>): Promise<Exit> {
  const [first = '', key] = scene.given.words
  if (key === undefined) {
    if (/^[\w-]{20,40}$/.test(first)) return act(first)
    return misused(scene, `${first} is no id of a lane: give flow and key, or an id as sluice lanes lists them.`)
  }
  const answer = await ask(scene, { method: 'GET', path: '/v1/lanes', query: { flow: first, key, limit: '1' } })
  if (answer.kind !== 'done') return ended(scene.out, answer)
  const lane = (answer.value as Page<Lane>).items[0]
  if (lane !== undefined) return act(lane.id)
  const detail = 'The lane has nothing in it, or never was.'
  const problem = { status: 404, code: 'NOT_FOUND', detail, fix: `sluice explain ${first} ${key} says which.` }
  return ended(scene.out, { kind: 'problem', problem })
}
