// `sluice dead`: runs that died and events that found no way. One by its id, or all of a filter, counted first.
import { open } from 'node:fs/promises'
import { json } from '../../observe/explain-words.ts'
import { roomForMore, writeAnswer } from '../answer-stream.ts'
import { pathOf } from '../caller.ts'
import { ended } from '../problem.ts'
import { ask, misused, PAGE, show, showPage, texts, YES, type Command, type Page, type Scene } from '../command.ts'
import { unconfirmed } from '../confirm.ts'
import { EXIT, type Exit } from '../exit.ts'
import { many, span, time, type Column } from '../output.ts'
import { Progress } from '../progress.ts'
import { steer } from './lanes.ts'

interface Letter {
  readonly kind: 'run' | 'unrouted'
  readonly id: string
  readonly flow: string
  readonly key?: string
  readonly reason: string
  readonly error?: string
  readonly state?: string
  readonly at: number
  readonly tries: number
  readonly events: readonly string[]
  readonly attempts?: readonly { readonly at: number; readonly ms: number; readonly error: string }[]
  readonly contents?: readonly { readonly id: string; readonly source: string; readonly type: string }[]
}

const FILTER = {
  ...texts({
    flow: 'of this flow',
    key: 'of this key',
    tenant: 'of this tenant',
    from: 'dead since then, as 2026-01-31T12:00:00Z',
    to: 'dead before then',
  }),
  unrouted: { type: 'boolean', says: 'events that found no way, instead of runs that died' },
} as const

const COLUMNS: readonly Column<Letter>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'flow', cell: ({ flow }) => flow },
  { title: 'key', cell: ({ key }) => key },
  { title: 'died', cell: ({ at }) => time(at) },
  { title: 'tries', cell: ({ tries }) => tries },
  { title: 'events', cell: ({ events }) => events.length },
  { title: 'state', cell: ({ state }) => state },
  { title: 'why', cell: ({ reason, error, attempts }) => attempts?.at(-1)?.error ?? error ?? reason },
]

const COUNT = '/v1/dead-letters/count'

function filterOf({ given }: Scene): Readonly<Record<string, string>> {
  const kind = given.is('unrouted') ? { kind: 'unrouted' } : {}
  return { ...given.texts(['flow', 'key', 'tenant', 'from', 'to']), ...kind }
}

const list: Command = {
  words: 'dead list',
  says: 'dead letters, newest first',
  options: { ...FILTER, ...PAGE },
  run: (scene) => {
    const query = { ...filterOf(scene), ...scene.given.texts(['limit', 'cursor']) }
    return showPage(scene, { method: 'GET', path: '/v1/dead-letters', query }, (items: readonly Letter[]) =>
      scene.out.table(COLUMNS, items, 'There are no dead letters.'),
    )
  },
}

const counting: Command = {
  words: 'dead count',
  says: 'how many there are of a filter, with those that were retried and have not ended yet',
  options: FILTER,
  run: (scene) => {
    const call = { method: 'GET', path: COUNT, query: filterOf(scene) } as const
    return show(scene, call, ({ count: n }: { readonly count: number }) => scene.out.line(`${many(n, 'dead letter')}.`))
  },
}

const one: Command = {
  words: 'dead show',
  takes: ['<id>'],
  says: 'one dead letter, with its attempts and its events',
  run: (scene) => {
    const path = pathOf('v1/dead-letters', scene.given.words[0] ?? '')
    return show(scene, { method: 'GET', path }, (letter: Letter) => {
      const { out } = scene
      out.fields([
        ['id', letter.id],
        ['flow', letter.flow],
        ['key', letter.key],
        ['died', time(letter.at)],
        ['state', letter.state],
        ['reason', letter.reason],
        ['error', letter.error],
      ])
      for (const { at, ms, error } of letter.attempts ?? []) {
        out.fields([['attempt', `${time(at)}, after ${span(ms)}: ${error}`]])
      }
      for (const { id, source, type } of letter.contents ?? []) out.fields([['event', `${id}  ${source}/${type}`]])
    })
  },
}

const DID = { retry: 'retried', drop: 'dropped' } as const

const acts: readonly Command[] = (['retry', 'drop'] as const).map((act) => ({
  words: `dead ${act}`,
  takes: ['[id]'],
  says: act === 'retry' ? 'run again: one, or all of a filter' : 'end: one, or all of a filter',
  options: { ...FILTER, all: { type: 'boolean', says: 'all there are' }, yes: YES },
  run: async (scene) => {
    const [id] = scene.given.words
    const filter = filterOf(scene)
    const isFiltered = Object.keys(filter).length > 0 || scene.given.is('all')
    if ((id === undefined) !== isFiltered) {
      return misused(scene, `Give either an id, or what names them, such as --flow; --all is all.`)
    }
    if (id === undefined) return all(scene, act, filter)
    const { where } = await scene.api()
    const question = `The dead letter ${id} of ${where} is dropped for good. Go on?`
    const no = act === 'drop' ? await unconfirmed(scene, question) : undefined
    return no ?? steer(scene, pathOf('v1/dead-letters', id, act), {})
  },
}))

async function all(scene: Scene, act: 'retry' | 'drop', filter: Readonly<Record<string, string>>): Promise<Exit> {
  const { out } = scene
  const counted = await count(scene, filter)
  if (counted.kind === 'exit') return counted.exit
  if (counted.count === 0 && !out.asJson) {
    out.line('There are none.')
    return EXIT.done
  }
  const { where } = await scene.api()
  const no = await unconfirmed(scene, `${many(counted.count, 'dead letter')} of ${where}: ${act} them?`)
  if (no !== undefined) return no
  const body = Object.keys(filter).length === 0 ? { all: true } : filter
  const call = { method: 'POST', path: `/v1/dead-letters/${act}`, body } as const
  return show(scene, call, ({ count: n }: { readonly count: number }) => {
    out.line(`${DID[act]} ${many(n, 'dead letter')}.`)
  })
}

type Counted = { readonly kind: 'count'; readonly count: number } | { readonly kind: 'exit'; readonly exit: Exit }

async function count(scene: Scene, query: Readonly<Record<string, string>>): Promise<Counted> {
  const answer = await ask(scene, { method: 'GET', path: COUNT, query })
  if (answer.kind !== 'done') return { kind: 'exit', exit: ended(scene.out, answer) }
  return { kind: 'count', ...(answer.value as { readonly count: number }) }
}

const exporting: Command = {
  words: 'dead export',
  says: 'all of a filter with their events and bytes, a line of JSON for each',
  options: { ...FILTER, ...texts({ out: 'the file; standard output unless said' }) },
  run: async (scene) => {
    const filter = filterOf(scene)
    const counted = await count(scene, filter)
    if (counted.kind === 'exit') return counted.exit
    const file = scene.given.text('out')
    const sink = file === undefined ? ANSWER : await fileSink(file)
    const progress = new Progress({
      stream: scene.out.stderr,
      clock: scene.clock,
      what: 'exported',
      total: counted.count,
    })
    const failed = await exportPages(scene, filter, async (lines, done) => {
      await sink.write(lines)
      progress.at(done)
    })
    await sink.end()
    progress.end()
    return failed ?? EXIT.done
  },
}

/** Where an export goes. What cannot be written is thrown. */
interface Sink {
  write(lines: string): Promise<void>
  end(): Promise<void>
}

const ANSWER: Sink = {
  write: (lines) => {
    writeAnswer(lines)
    return roomForMore()
  },
  end: async () => {},
}

/** Payloads are in it: as the store itself, it is for nobody else to read. */
async function fileSink(file: string): Promise<Sink> {
  const handle = await open(file, 'w', 0o600)
  return {
    write: (lines) => handle.writeFile(lines),
    end: async () => {
      // Of a pipe or a device there is nothing to be synced.
      if ((await handle.stat()).isFile()) await handle.sync()
      await handle.close()
    },
  }
}

async function exportPages(
  scene: Scene,
  filter: Readonly<Record<string, string>>,
  write: (lines: string, done: number) => Promise<void>,
): Promise<Exit | undefined> {
  let done = 0
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const query = { ...filter, limit: '100', ...(cursor !== '' && { cursor }) }
    const answer = await ask(scene, { method: 'GET', path: '/v1/dead-letters/export', query })
    if (answer.kind !== 'done') return ended(scene.out, answer)
    const page = answer.value as Page<unknown>
    done += page.items.length
    await write(page.items.map((item) => `${json(item)}\n`).join(''), done)
    cursor = page.next
  }
  return undefined
}

export const dead: readonly Command[] = [list, counting, one, ...acts, exporting]
