// The lock file is removed beside a process at work, in the end by a second process that gets in. From then on the first one
// acknowledges nothing and begins nothing: each event that one of them acknowledged runs, and never in both at once.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { openStore, Sluice } from '../../src/index.ts'
import { leaseMargin } from '../../src/run/heartbeat.ts'
import type { Line } from './lock-child.ts'
import { connect, freshFile, start } from './scratch.ts'

const LOOK_AGAIN_MS = 5
const LEASE_MS = 900

function linesOf(journal: string): readonly Line[] {
  const whole = readFileSync(journal, 'utf8').split('\n').slice(0, -1)
  return whole.map((line) => {
    const [what, by = '', detail = '', at] = line.split(' ')
    return { what: what as Line['what'], by, detail, at: Number(at) }
  })
}

it('two processes never both work, though the lock of the file is removed', { timeout: 300_000 }, async () => {
  const [file, journal] = [freshFile(), freshFile()]
  const lock = `${file}-lock`
  writeFileSync(journal, '')
  const first = start('lock-child.ts', [file, journal, 'first', `${LEASE_MS}`])
  await untilTold(journal, [first], (lines) => count(lines, 'ended', 'first') > 300)
  for (let times = 0; times < 3; times++) {
    rmSync(lock)
    // A process at work takes its lock back.
    await untilTold(journal, [first], () => existsSync(lock))
  }
  const second = start('lock-child.ts', [file, journal, 'second', `${LEASE_MS}`, 'intrude'])
  await untilTold(journal, [first, second], (lines) => {
    const since = lines.slice(lines.findIndex(({ what, by }) => what === 'opened' && by === 'second'))
    const asked = count(since, 'refused', 'first') + count(since, 'acked', 'first')
    return count(since, 'ended', 'second') > 300 && asked > 300
  })
  const gone = [first, second].map((child) => once(child, 'exit'))
  for (const child of [first, second]) child.kill('SIGKILL')
  await Promise.all(gone)
  const both = linesOf(journal)

  const refused = both.filter(({ what }) => what === 'refused')
  expect(new Set(refused.map(({ by, detail }) => `${by} ${detail}`))).toEqual(new Set(['first STORE_TAKEN']))
  const taken = both.findIndex(({ what }) => what === 'refused')
  expect(both.slice(taken).filter(({ what, by }) => by === 'first' && what === 'acked')).toEqual([])

  const ran = await drained(file)
  expect(connect(file).prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
  const ended = new Set([...both.flatMap(({ what, detail }) => (what === 'ended' ? detail : [])), ...ran])
  const lost = both.filter(({ what, detail }) => what === 'acked' && !ended.has(detail))
  expect(lost).toEqual([])

  expect(overlaps(both)).toEqual([])
})

/** A handler that the machine kept waiting for longer than this may end after its lease, when its event runs again. */
const MARGIN_MS = leaseMargin(LEASE_MS)

/** The events that a handler began before another one had ended with them. */
function overlaps(lines: readonly Line[]): readonly string[] {
  const work = lines.filter(({ what }) => what === 'began' || what === 'ended')
  return [...Map.groupBy(work, ({ detail }) => detail)].flatMap(([label, its]) =>
    its.some((line, n) => line.what === 'began' && its[n + 1]?.what === 'began' && lasted(its.slice(n)) < MARGIN_MS)
      ? label
      : [],
  )
}

/** How long the handler was at work that begins with the first line. */
function lasted([begin, ...lines]: readonly Line[]): number {
  const end = lines.find(({ what, by }) => what === 'ended' && by === begin?.by)
  return (end?.at ?? Infinity) - (begin?.at ?? 0)
}

function count(lines: readonly Line[], what: Line['what'], by: string): number {
  return lines.filter((line) => line.what === what && line.by === by).length
}

/** Waits for lines of the journal for as long as the processes live. */
async function untilTold(
  journal: string,
  processes: readonly ChildProcess[],
  isTold: (lines: readonly Line[]) => boolean,
): Promise<void> {
  while (!isTold(linesOf(journal))) {
    for (const { exitCode, spawnargs } of processes) expect(exitCode, spawnargs.join(' ')).toBe(null)
    await setTimeout(LOOK_AGAIN_MS)
  }
}

/** Works off what is left, and returns what it ran. */
async function drained(file: string): Promise<readonly string[]> {
  const ran: string[] = []
  const store = await openStore(`sqlite:${file}`)
  const app = new Sluice({ store, log: false })
  app.flow('work', { on: 'ping', key: () => 'unused', run: ({ key }) => void ran.push(key) })
  await app.start()
  await expect.poll(async () => (await app.admin.lanes.list()).items).toEqual([])
  await app.stop()
  await store.close()
  return ran
}
