// The lock file is removed again and again beside a process at work, until a second process gets in. From then on the first
// one acknowledges nothing and begins nothing: whatever either has acknowledged runs, and never in both at once.
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { openStore, Sluice } from '../../src/index.ts'
import type { Line } from './lock-child.ts'
import { connect, freshFile, start } from './scratch.ts'

function linesOf(journal: string): readonly Line[] {
  const whole = readFileSync(journal, 'utf8').split('\n').slice(0, -1)
  return whole.map((line) => {
    const [what, by = '', detail = ''] = line.split(' ')
    return { what: what as Line['what'], by, detail }
  })
}

it('two processes never both work, though the lock of the file is removed', { timeout: 120_000 }, async () => {
  const [file, journal] = [freshFile(), freshFile()]
  writeFileSync(journal, '')
  const count = (what: Line['what'], by: string): number =>
    linesOf(journal).filter((line) => line.what === what && line.by === by).length
  const first = start('lock-child.ts', [file, journal, 'first'])
  await expect.poll(() => count('ended', 'first')).toBeGreaterThan(300)
  const second = start('lock-child.ts', [file, journal, 'second'])
  await expect
    .poll(
      () => {
        rmSync(`${file}-lock`, { force: true })
        return count('opened', 'second')
      },
      { interval: 1 },
    )
    .toBe(1)
  await expect.poll(() => count('ended', 'second')).toBeGreaterThan(300)
  await expect.poll(() => count('refused', 'first')).toBeGreaterThan(10)
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

  const atWork = new Map<string, string>()
  for (const { what, by, detail } of both) {
    if (what === 'began') {
      expect(atWork.get(detail), `${detail} runs in one process`).toBeUndefined()
      atWork.set(detail, by)
    } else if (what === 'ended') atWork.delete(detail)
  }
})

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
