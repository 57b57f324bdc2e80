// `sluice replay`: stored events run again. Counted first, asked for, begun, and watched until it is done.
import type { Replay } from '../../operate/replays.ts'
import { pathOf } from '../caller.ts'
import { ended } from '../problem.ts'
import { ask, misused, show, showPage, texts, YES, type Command, type Scene } from '../command.ts'
import { unconfirmed } from '../confirm.ts'
import { EXIT, type Exit } from '../exit.ts'
import { many, time, type Column, type Field } from '../output.ts'
import { Progress } from '../progress.ts'
import { steer } from './lanes.ts'

const COLUMNS: readonly Column<Replay>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'state', cell: ({ state }) => state },
  { title: 'started', cell: ({ started }) => time(started) },
  { title: 'found', cell: ({ found }) => found },
  { title: 'looked at', cell: ({ looked }) => looked },
  { title: 'placed', cell: ({ placed }) => placed },
  { title: 'failed', cell: ({ failed }) => failed },
]

const FILTER = ['source', 'type', 'tenant', 'flow', 'key', 'from', 'to', 'event'] as const
/** A replay places a page at a time: to look more often shows nothing more. */
const LOOK_EVERY = 250

const start: Command = {
  words: 'replay start',
  says: 'run stored events again, behind the live ones',
  options: {
    ...texts({ source: 'of this source', type: 'of this type', tenant: 'of this tenant' }),
    ...texts({ flow: 'together with --key: what came into that lane', key: 'together with --flow' }),
    ...texts({ from: 'arrived since then, as 2026-01-31T12:00:00Z', to: 'arrived before then', event: 'one alone' }),
    into: { type: 'string', value: 'FLOW', multiple: true, says: 'only these flows get them' },
    ...texts({ rate: 'events in --per; 100 unless said', per: 'as 1s', id: 'asked for twice, begun once' }),
    all: { type: 'boolean', says: 'every event that is kept' },
    detach: { type: 'boolean', says: 'do not wait for the end' },
    yes: YES,
  },
  run: async (scene) => {
    const { given, out } = scene
    const filter = given.texts(FILTER)
    if ((Object.keys(filter).length === 0) !== given.is('all')) {
      return misused(scene, 'Say which events, such as --source or --from; --all is every one that is kept.')
    }
    const counted = await ask(scene, { method: 'GET', path: '/v1/replays/count', query: filter })
    if (counted.kind !== 'done') return ended(out, counted)
    const { count } = counted.value as { readonly count: number }
    const { kind, where } = await scene.api()
    const no = await unconfirmed(scene, `${many(count, 'event')} of ${where}: run them again?`)
    if (no !== undefined) return no
    const begun = await ask(scene, { method: 'POST', path: '/v1/replays', body: { filter, ...howOf(scene) } })
    if (begun.kind !== 'done') return ended(out, begun)
    const replay = begun.value as Replay
    if (kind === 'server' && !given.is('detach')) return watch(scene, replay)
    print(scene, replay)
    if (kind === 'own') out.note('It goes on when the app is started.')
    return EXIT.done
  },
}

function howOf({ given }: Scene): object {
  const [rate, into] = [given.text('rate'), given.all('into')]
  return {
    ...given.texts(['id', 'per']),
    ...(rate !== undefined && { rate: Number(rate) }),
    ...(into.length > 0 && { into }),
  }
}

/** Until it has ended. Whoever stops watching does not stop it. */
async function watch(scene: Scene, begun: Replay): Promise<Exit> {
  const { out, clock, signal } = scene
  const progress = new Progress({ stream: out.stderr, clock, what: 'replay', total: begun.found })
  let replay = begun
  while (replay.state === 'running' && !signal.aborted) {
    await new Promise<void>((resolve) => clock.after(LOOK_EVERY, resolve))
    const answer = await ask(scene, { method: 'GET', path: pathOf('v1/replays', begun.id) })
    if (answer.kind !== 'done') return ended(out, answer)
    replay = answer.value as Replay
    progress.at(replay.looked)
  }
  progress.end()
  print(scene, replay)
  if (replay.state === 'running') out.note(`It goes on: sluice replay show ${replay.id}`)
  const isWell = replay.state === 'done' || replay.state === 'running'
  return isWell && replay.failed === 0 ? EXIT.done : EXIT.failed
}

function print({ out }: Scene, replay: Replay): void {
  if (out.asJson) return out.answer(replay)
  const failed: Field = ['failed', replay.failed === 0 ? undefined : `${replay.failed}, the last: ${replay.error}`]
  out.fields([
    ['id', replay.id],
    ['state', replay.state],
    ['into', replay.into.join(', ')],
    ['started', time(replay.started)],
    ['ended', time(replay.ended)],
    ['found', replay.found],
    ['placed', replay.placed],
    ['skipped', replay.skipped],
    ['gone', replay.gone],
    failed,
  ])
}

export const replay: readonly Command[] = [
  start,
  {
    words: 'replay list',
    says: 'the last replays, newest first',
    run: (scene) =>
      showPage(scene, { method: 'GET', path: '/v1/replays' }, (items: readonly Replay[]) =>
        scene.out.table(COLUMNS, items, 'There was no replay.'),
      ),
  },
  {
    words: 'replay show',
    takes: ['<id>'],
    says: 'how far one has come',
    run: (scene) => {
      const path = pathOf('v1/replays', scene.given.words[0] ?? '')
      return show(scene, { method: 'GET', path }, (one: Replay) => print(scene, one))
    },
  },
  {
    words: 'replay cancel',
    takes: ['<id>'],
    says: 'place nothing more; what was placed runs',
    run: (scene) => steer(scene, pathOf('v1/replays', scene.given.words[0] ?? '', 'cancel'), {}),
  },
]
