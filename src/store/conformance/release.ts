// L13, M6: a process that stops gives its runs back, and those that a limit puts off; that costs the run nothing.
import assert from 'node:assert/strict'
import { keys, sorted, type Suite } from './stage.ts'
import { done, givenBack, released, retry } from './vocabulary.ts'

export const release: Suite = (rule) => {
  rule('L13 a run that is given back is ready at once: same id, same events, no try, no lapse', async (t) => {
    await t.appendEach(['a', 'b'])
    const run = await t.next({ process: 'p1' })
    await t.append('c')
    await t.end(run, released, { process: 'p1' })
    const back = await t.next({ process: 'p2' })
    assert.deepEqual([back.run, t.names(back), back.tries, back.lapses], [run.run, ['a', 'b'], 0, 0])
    assert.notEqual(back.token, run.token)
    await t.end(back)
    assert.deepEqual(t.names(await t.next()), ['c'])
  })

  rule('L13 a run that is given back keeps the tries and lapses it had', async (t) => {
    await t.append('a')
    await t.end(await t.next(), retry(0))
    await t.next()
    t.lapse()
    await t.end(await t.next(), released)
    const back = await t.next()
    assert.deepEqual([back.tries, back.lapses], [1, 1])
  })

  rule(
    'M6 a run that is put off waits so long, and costs nothing: no try, no lapse, not the time of again',
    async (t) => {
      await t.append('a')
      await t.end(await t.next(), retry(0))
      await t.end(await t.next(), givenBack(100, 'c3RhdGU='))
      const back = await t.dueIn(100)
      assert.deepEqual([back.tries, back.lapses, back.againSince, back.state64], [1, 0, 0, 'c3RhdGU='])
    },
  )

  rule('M6 L24 a run that failed and is put off still stands in the line of the failing', async (t) => {
    await t.append('a')
    await t.end(await t.next(), retry(0))
    await t.end(await t.next(), givenBack(0))
    assert.deepEqual(await t.claim({ failing: 0 }), [])
    assert.equal((await t.claim({ failing: 1 })).length, 1)
  })

  rule('L13 the token of a run that was given back is lost', async (t) => {
    await t.append('a')
    const run = await t.next()
    await t.end(run, released)
    assert.equal(await t.renew(run), 'lost')
    assert.equal(await t.settle(run, done), 'lost')
  })

  rule('L13 a run that is given back goes behind lanes that were ready before', async (t) => {
    await t.append('a', { key: 'a' })
    const run = await t.next()
    t.clock.advance(10)
    await t.append('b', { key: 'b' })
    await t.end(run, released)
    assert.deepEqual(keys(await t.claim()), ['b', 'a'])
  })

  rule('L13 leases that are not given back lapse by themselves', async (t) => {
    await t.append('a', { key: 'a' })
    await t.append('b', { key: 'b' })
    const [a] = await t.claim({ process: 'p1' })
    assert.ok(a)
    await t.end(a, released, { process: 'p1' })
    assert.deepEqual(keys(await t.claim({ process: 'p2' })), ['a'])
    t.lapse()
    assert.deepEqual(sorted(keys(await t.claim({ process: 'p3' }))), ['a', 'b'])
  })
}
