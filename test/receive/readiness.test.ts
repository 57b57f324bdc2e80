// `/readyz` reports whether the store would acknowledge a write. It asks the store once per second, however often it is called.
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openStore, Sluice, type Store } from '../../src/index.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { ownFolder } from '../temporary-folder.ts'
import { opened, withGithub } from './scene.ts'
import { writingBy } from './receiving-scene.ts'

async function ready(app: Sluice): Promise<unknown> {
  const response = await app.fetch(new Request('http://x/readyz'))
  return [response.status, await response.json()]
}

const READY = [200, { ready: true }]
const DOWN = [503, { ready: false, why: 'The store does not respond.' }]

interface Asked {
  readonly app: Sluice
  readonly clock: VirtualClock
  /** The number of calls of the store. The next replies come from `replies`, and then from the store. */
  readonly calls: () => number
  readonly replies: Promise<never>[]
}

async function counting(): Promise<Asked> {
  const clock = new VirtualClock()
  const real = await openStore('memory:', { clock })
  let calls = 0
  const replies: Promise<never>[] = []
  const store: Store = writingBy(real, (call) => {
    if (call.writes.length > 0) return real.writeDocs(call)
    calls++
    return replies.shift() ?? real.writeDocs(call)
  })
  const app = new Sluice({ store, clock, log: false })
  onTestFinished(async () => {
    await app.stop()
    await real.close()
  })
  return { app, clock, calls: () => calls, replies }
}

describe('/readyz', () => {
  it('asks the store once per second, whatever the reply', async () => {
    const { app, clock, calls, replies } = await counting()
    const answers = await Promise.all(Array.from({ length: 100 }, () => ready(app)))
    expect(answers).toEqual(answers.map(() => READY))
    clock.advance(999)
    expect([await ready(app), calls()]).toEqual([READY, 1])
    clock.advance(1)
    replies.push(Promise.reject(new Error('connect ECONNREFUSED db.internal')))
    expect([await ready(app), await ready(app), calls()]).toEqual([DOWN, DOWN, 2])
    clock.advance(1_000)
    expect([await ready(app), calls()]).toEqual([READY, 3])
  })

  it('waits five seconds for a store that hangs, and asks it no more often than that', async () => {
    const { app, clock, calls, replies } = await counting()
    replies.push(new Promise(() => {}))
    const answers = [ready(app), ready(app)]
    await expect.poll(() => clock.next()).toBeDefined()
    clock.advance(4_999)
    answers.push(ready(app))
    expect(calls()).toBe(1)
    clock.advance(1)
    expect(await Promise.all(answers)).toEqual([DOWN, DOWN, DOWN])
    clock.advance(1_000)
    expect([await ready(app), calls()]).toEqual([READY, 2])
  })

  it.each<readonly [string, (file: string) => void]>([
    ['removed', (file) => rmSync(file)],
    ['moved', (file) => renameSync(file, `${file}.old`)],
    [
      'replaced',
      (file) => {
        renameSync(file, `${file}.old`)
        writeFileSync(file, '')
      },
    ],
  ])('says so while the file of SQLite is %s', async (_, lose) => {
    const file = join(ownFolder(), 'a.db')
    const { app, clock } = await opened(withGithub, { store: `sqlite:${file}` })
    expect(await ready(app)).toEqual(READY)
    lose(file)
    clock.advance(1_000)
    expect(await ready(app)).toEqual(DOWN)
  })
})
