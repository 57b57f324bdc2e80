// L9: dead letters are listed, shown, retried, dropped and exported, one by one or by filter.
import { describe, expect, test } from 'vitest'
import { PermanentError } from '../../src/index.ts'
import { Gate, numbersOf, ping, play, sendNow, soon, STORES, userOf, type Declare, type More } from './scene.ts'

function dying(more: More = {}): Declare {
  return (app) => app.flow('f', { on: 'ping', key: userOf, retry: [], run: () => {}, ...more })
}
const dead = new PermanentError('bad data')

describe.each(STORES)('L9 dead letters on %s', (store) => {
  test('L9 a dead letter has its events, attempts and errors', async () => {
    const t = await play(store, dying({ retry: ['1s'] }))
    t.fail('f', new Error('first'))
    t.fail('f', new Error('second'))
    await t.send([ping('u', 1), ping('u', 2)])
    await t.advance('2s')
    const { items, next } = await t.app.admin.deadLetters.list()
    expect(next).toBeUndefined()
    expect(items).toMatchObject([{ kind: 'run', flow: 'f', key: 'u', tries: 2, lapses: 0, blocks: false }])
    const [deadLetter] = items
    expect(deadLetter?.id).toBe(t.runs[0]?.id)
    const shown = await t.app.admin.deadLetters.show(deadLetter?.id ?? '')
    expect(shown?.kind === 'run' && shown.attempts.map((one) => one.error)).toEqual(['Error: first', 'Error: second'])
    expect(shown?.contents.map((event) => event.data)).toEqual([
      { user: 'u', n: 1 },
      { user: 'u', n: 2 },
    ])
    expect(await t.app.admin.deadLetters.show('nothing')).toBeUndefined()
  })

  test("L9 with onDead: 'continue' the lane continues", async () => {
    const t = await play(store, dying())
    t.fail('f', dead)
    await sendNow(t, ping('u', 1))
    await sendNow(t, ping('u', 2))
    expect(t.runs).toMatchObject([{ ending: 'dead' }, { ending: 'done', events: [{ n: 2 }] }])
  })

  test("L9 with onDead: 'block' the lane waits for that dead letter alone, until it is done", async () => {
    const t = await play(store, dying({ onDead: 'block' }))
    t.fail('f', dead)
    await sendNow(t, ping('u', 1))
    await sendNow(t, [ping('u', 2), ping('other', 1)])
    await t.advance('1h')
    expect(t.runs.map((run) => run.key)).toEqual(['u', 'other'])
    const { items } = await t.app.admin.deadLetters.list({ flow: 'f', key: 'u' })
    expect(items).toMatchObject([{ blocks: true }])
    expect(await t.app.admin.deadLetters.retry(items[0]?.id ?? '')).toBe('ok')
    await soon(t)
    expect(numbersOf(t)).toEqual([[1], [1], [1], [2]])
    expect(t.runs.at(-2)).toMatchObject({ attempt: 1, ending: 'done' })
  })

  test("L9 with onDead: 'block' dropping the dead letter also frees the lane", async () => {
    const t = await play(store, dying({ onDead: 'block' }))
    t.fail('f', dead)
    await sendNow(t, ping('u', 1))
    await sendNow(t, ping('u', 2))
    expect(await t.app.admin.deadLetters.drop(t.runs[0]?.id ?? '')).toBe('ok')
    await soon(t)
    expect(numbersOf(t)).toEqual([[1], [2]])
    expect((await t.app.admin.deadLetters.list()).items).toEqual([])
  })

  // Regression: a filter with a key but no flow, or with a misspelt field, applied to all dead letters.
  test.each([[{ key: 'a' }], [{ flwo: 'f' }], [5], [null]])(
    'L9 drop(%j) is rejected, and drops nothing',
    async (filter) => {
      const t = await play(store, (app) =>
        app.flow('f', {
          on: 'ping',
          key: userOf,
          retry: [],
          run: () => {
            throw new Error('no')
          },
        }),
      )
      await sendNow(t, [ping('a'), ping('b')])
      await expect(t.app.admin.deadLetters.drop(filter as never)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
      expect((await t.app.admin.deadLetters.list()).items).toHaveLength(2)
    },
  )

  test('L9 a retried dead letter keeps its id and runs before waiting events with zero tries; a second call returns already', async () => {
    const gate = new Gate()
    const t = await play(store, dying({ retry: ['1s', '1s'], window: { quiet: '10s' }, run: () => gate.wait() }))
    t.fail('f', dead)
    await t.send(ping('u', 1))
    await t.advance('10s')
    const id = t.runs[0]?.id ?? ''
    await t.send(ping('u', 2))
    await t.app.admin.flows.pause('f', { reason: 'to look', by: 'test' })
    expect(await t.app.admin.deadLetters.retry(id)).toBe('ok')
    expect(await t.app.admin.deadLetters.retry(id)).toBe('already')
    await t.app.admin.flows.resume('f')
    await soon(t)
    expect(t.runs[1]).toMatchObject({ id, attempt: 1, ending: 'running', events: [{ n: 1 }] })
    expect(await t.app.admin.deadLetters.retry(id)).toBe('already')
    gate.open()
    await t.advance('10s')
    expect(numbersOf(t)).toEqual([[1], [1], [2]])
    expect((await t.app.admin.deadLetters.list()).items).toEqual([])
    expect(await t.app.admin.deadLetters.retry('nothing')).toBe('missing')
  })

  test('L9 a retried run that dies again had all its attempts, and is a dead letter again', async () => {
    const t = await play(store, dying({ retry: ['1s'] }))
    t.fail('f', new Error('down'), 4)
    await t.send(ping('u', 1))
    await t.advance('5s')
    await t.app.admin.deadLetters.retry(t.runs[0]?.id ?? '')
    await t.advance('5s')
    expect(t.runs.map(({ attempt, ending }) => [attempt, ending])).toEqual([
      [1, 'retry'],
      [2, 'dead'],
      [1, 'retry'],
      [2, 'dead'],
    ])
    expect((await t.app.admin.deadLetters.list()).items).toHaveLength(1)
    expect(await t.app.admin.deadLetters.retry(t.runs[0]?.id ?? '')).toBe('ok')
    await t.advance('5s')
    expect(t.runs.at(-1)).toMatchObject({ ending: 'done', attempt: 1 })
  })

  test('L9 a dead letter never runs beside a live run of its lane', async () => {
    const gate = new Gate()
    const t = await play(store, dying({ run: () => gate.wait() }))
    t.fail('f', dead)
    await sendNow(t, ping('u', 1))
    await sendNow(t, ping('u', 2))
    await t.app.admin.deadLetters.retry(t.runs[0]?.id ?? '')
    await soon(t)
    expect(gate.waits()).toBe(1)
    gate.open()
    await soon(t)
    expect(numbersOf(t)).toEqual([[1], [2], [1]])
  })

  test('L9 retry and drop by filter return a count', async () => {
    const t = await play(store, (app) =>
      app
        .flow('f', { on: 'ping', key: userOf, retry: [], run: () => {} })
        .flow('g', { on: 'pong', key: userOf, retry: [], run: () => {} }),
    )
    t.fail('f', dead, 4)
    t.fail('g', dead)
    await sendNow(t, [
      ...['a', 'b', 'c'].map((name) => ({ ...ping(name), tenant: 'x' })),
      { ...ping('d'), tenant: 'y' },
      { type: 'pong', data: { user: 'a' } },
    ])
    expect((await t.app.admin.deadLetters.list({ flow: 'f' })).items).toHaveLength(4)
    expect((await t.app.admin.deadLetters.list({ flow: 'f', key: 'b' })).items).toMatchObject([{ key: 'b' }])
    expect(await t.app.admin.deadLetters.drop({ tenant: 'y' })).toEqual({ count: 1 })
    expect(await t.app.admin.deadLetters.retry({ flow: 'f' })).toEqual({ count: 3 })
    expect(await t.app.admin.deadLetters.retry({ flow: 'g', key: 'nobody' })).toEqual({ count: 0 })
    await soon(t)
    expect(
      t.runs
        .slice(5)
        .map((run) => run.key)
        .toSorted(),
    ).toEqual(['a', 'b', 'c'])
    expect((await t.app.admin.deadLetters.list()).items).toMatchObject([{ flow: 'g' }])
  })

  test('L9 the list is in pages, newest first', async () => {
    const t = await play(store, dying())
    t.fail('f', dead, 5)
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await sendNow(t, ping(name))
      await t.advance('1s')
    }
    const keys: string[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: Awaited<ReturnType<typeof t.app.admin.deadLetters.list>> = await t.app.admin.deadLetters.list(
        {},
        cursor,
        2,
      )
      expect(page.items.length).toBeLessThanOrEqual(2)
      keys.push(...page.items.map((item) => (item.kind === 'run' ? item.key : '')))
      cursor = page.next
    }
    expect(keys).toEqual(['e', 'd', 'c', 'b', 'a'])
  })

  test('L9 the export has one JSON text per dead letter, with the bytes', async () => {
    const t = await play(store, dying())
    t.fail('f', dead, 2)
    await sendNow(t, [ping('a', 1), ping('b', 2)])
    const lines: string[] = []
    for await (const line of t.app.admin.deadLetters.export({ flow: 'f' })) lines.push(line)
    const deadLetters = lines.map(
      (line) => JSON.parse(line) as { key: string; events: { data: unknown; body64: string }[] },
    )
    expect(deadLetters.map((one) => one.key).toSorted()).toEqual(['a', 'b'])
    const a = deadLetters.find((one) => one.key === 'a')
    expect(a?.events).toMatchObject([{ data: { user: 'a', n: 1 } }])
    expect(Buffer.from(a?.events[0]?.body64 ?? '', 'base64').toString()).toBe('{"user":"a","n":1}')
  })
})
