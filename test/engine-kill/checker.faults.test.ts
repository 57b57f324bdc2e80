// The checker of killed engines detects each fault. A first engine runs in this process until one of its handlers runs;
// the image of its file at that moment is what a killed process leaves. A second engine drains the image. Each test
// plants one fault in the image, in the drained file, or in the logs of the two engines.
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import { inFolder } from '../figures/folder.ts'
import { Chance } from '../sqlite/kill-load.ts'
import { appOn } from './app.ts'
import { check } from './check.ts'
import { drained } from './drained.ts'
import { Ledger } from './ledger.ts'
import type { LivesReport } from './lives.ts'
import { inputOf, now, type Line } from './load.ts'

const LABELS = Array.from({ length: 60 }, (_, at) => `1-${at}`)
const [FIRST = ''] = LABELS

type Forge = (lines: readonly Line[]) => readonly Line[]

interface Planted {
  /** Changes the image with which the second engine starts. */
  readonly image?: string
  /** Changes the file that the second engine has drained. */
  readonly end?: string
  readonly first?: Forge
  readonly second?: Forge
}

class Engine {
  readonly lines: Line[] = []
  readonly app: Sluice
  #isAtWork = Promise.withResolvers<void>()

  constructor(file: string, seed: number) {
    this.app = appOn({ store: `sqlite:${file}` }, new Chance(seed), this.tell)
    this.app.onAny((name, what) => {
      if (name.startsWith('run.') && 'run' in what) this.tell({ kind: 'told', at: now(), name, run: what.run })
    })
  }

  readonly tell = (line: Line): void => {
    this.lines.push(line)
    if (line.kind === 'entered') this.#isAtWork.resolve()
  }

  /** Resolves when the next handler has started. */
  atWork(): Promise<void> {
    this.#isAtWork = Promise.withResolvers()
    return this.#isAtWork.promise
  }

  async start(): Promise<void> {
    await this.app.start()
    this.tell({ kind: 'opened', at: now() })
  }
}

function change(file: string, sql: string): void {
  const db = new DatabaseSync(file)
  expect(db.prepare(sql).run().changes, 'rows changed').toBeGreaterThan(0)
  db.close()
}

const asWritten: Forge = (lines) => lines

function report({ image: sql, end, first = asWritten, second = asWritten }: Planted): Promise<LivesReport> {
  return inFolder(async (folder) => {
    const live = join(folder, 'live.db')
    const image = join(folder, 'image.db')
    const one = new Engine(live, 1)
    await one.start()
    one.tell({ kind: 'sending', labels: LABELS })
    const atWork = one.atWork()
    const answers = await one.app.publish(LABELS.map((label) => inputOf(label)))
    one.tell({ kind: 'acked', answers: LABELS.map((label, at) => [label, answers[at]?.kind ?? '']) })
    await atWork
    for (const suffix of ['', '-wal']) copyFileSync(`${live}${suffix}`, `${image}${suffix}`)
    const written = [...one.lines]
    const killed = now()
    await one.app.stop()
    if (sql !== undefined) change(image, sql)
    const two = new Engine(image, 2)
    await two.start()
    const [answer] = await two.app.publish(inputOf(FIRST))
    two.tell({ kind: 'resent', label: FIRST, was: 'acked', answer: answer?.kind ?? '' })
    await drained(two.app, two.tell)
    await two.app.stop()
    if (end !== undefined) change(image, end)
    const ledger = new Ledger()
    ledger.hear(1, first(written), killed)
    ledger.hear(2, second(two.lines), now())
    await check(`sqlite:${image}`, ledger)
    return { counts: ledger.complaints.counts, complaints: ledger.complaints.first }
  })
}

/** The last run of a flow that the log reports as done. */
function doneIn(lines: readonly Line[], flow: string): string {
  const runs = new Set(lines.flatMap((line) => (line.kind === 'entered' && line.flow === flow ? [line.run] : [])))
  const told = lines.findLast((line) => line.kind === 'told' && line.name === 'run.done' && runs.has(line.run))
  if (told?.kind !== 'told') throw new Error(`No run of ${flow} is done.`)
  return told.run
}

function enteredIn(lines: readonly Line[]): Line & { readonly kind: 'entered' } {
  const entered = lines.find((line) => line.kind === 'entered')
  if (entered === undefined) throw new Error('No handler has begun.')
  return entered
}

it('two engines without a planted fault cause no complaint', async () => {
  const { counts, complaints } = await report({})
  expect(complaints).toEqual([])
  expect(counts).toMatchObject({ acked: LABELS.length, resent: 1 })
  expect(counts.lapsed).toBeGreaterThan(0)
  expect(counts.published).toBeGreaterThan(0)
})

describe('the checker detects', () => {
  it('acknowledged events that were never stored', async () => {
    expect(
      (
        await report({
          first: (lines) => [
            ...lines,
            { kind: 'sending', labels: ['1-early'] },
            { kind: 'acked', answers: [['1-early', 'stored']] },
          ],
        })
      ).complaints.join(),
    ).toContain('1-early was acknowledged and is not stored')
  })

  it('a run that returns after it was reported done', async () => {
    expect(
      (
        await report({
          first: (lines) => {
            const { run } = enteredIn(lines)
            return [
              ...lines,
              { kind: 'left', at: now(), run, how: 'done' },
              { kind: 'told', at: now(), name: 'run.done', run },
            ]
          },
        })
      ).counts.repeatedAfterDone,
    ).toBeGreaterThan(0)
  })

  it('lanes without their events', async () => {
    expect((await report({ image: 'delete from lanes' })).counts.lost).toBeGreaterThan(0)
  })

  it('a missing record of a run', async () => {
    expect((await report({ end: `delete from runs where kind = 'done'` })).counts.lost).toBeGreaterThan(0)
  })

  it('a missing published event', async () => {
    const parcel = `select max(seq) from events where cast(body as text) like '%/0"%'`
    const { complaints } = await report({ end: `delete from events where seq = (${parcel})` })
    expect(complaints.join()).toContain('published')
  })

  it('a known event that the store no longer recognises', async () => {
    const { complaints } = await report({ image: 'update events set identity = null' })
    expect(complaints.join()).toContain('stored a second time')
  })

  it('two handlers of a lane at once', async () => {
    const { counts, complaints } = await report({
      second: (lines) => {
        const entered = enteredIn(lines)
        return lines.toSpliced(lines.indexOf(entered) + 1, 0, { ...entered, at: entered.at + 0.001, run: 'forged' })
      },
    })
    expect(counts.overlapping).toBeGreaterThan(0)
    expect(complaints.join()).toContain('forged began in lane')
  })

  it('a handler that started while the process with the lane was alive', async () => {
    expect(
      (
        await report({
          second: (lines) => lines.map((line) => ('at' in line ? { ...line, at: line.at - 600_000 } : line)),
        })
      ).counts.overlapping,
    ).toBeGreaterThan(0)
  })

  it('a run that is recorded as done without a handler', async () => {
    expect(
      (
        await report({
          second: (lines) => {
            const run = doneIn(lines, 'single')
            return lines.filter((line) => !('run' in line && line.run === run))
          },
        })
      ).complaints.join(),
    ).toContain('no handler of it ended well')
  })

  it('a forgotten failed attempt', async () => {
    expect(
      (
        await report({
          second: (lines) => {
            const run = doneIn(lines, 'steps')
            return lines.map((line) => (line.kind === 'entered' && line.run === run ? { ...line, step: 0 } : line))
          },
        })
      ).complaints.join(),
    ).toContain('the end of an attempt')
  })
})
