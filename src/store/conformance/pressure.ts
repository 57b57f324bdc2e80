// L22: how hard-pressed a flow is, kept in the store: raised by a quarter, halved by each minute, never above one.
import assert from 'node:assert/strict'
import { only, type Stage, type Suite } from './stage.ts'
import { MINUTE, SECOND } from './vocabulary.ts'

async function level(t: Stage, raise: boolean, flow = 'flow'): Promise<number> {
  return only((await t.store.pressure({ flows: [{ flow, raise }] })).levels)
}

function near(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) < 0.001, `${actual} is about ${expected}`)
}

export const pressure: Suite = (rule) => {
  rule('L22 a flow that nobody raised has none', async (t) => {
    assert.equal(await level(t, false), 0)
  })

  rule('L22 a raise adds a quarter', async (t) => {
    near(await level(t, true), 0.25)
    near(await level(t, false), 0.25)
  })

  rule('L22 at most one raise in five seconds counts', async (t) => {
    await level(t, true)
    near(await level(t, true), 0.25)
    t.clock.advance(5 * SECOND - 1)
    assert.ok((await level(t, true)) < 0.25)
    t.clock.advance(1)
    near(await level(t, true), 0.25 * 0.5 ** (5 / 60) + 0.25)
  })

  rule('L22 it halves each minute', async (t) => {
    await level(t, true)
    t.clock.advance(MINUTE)
    near(await level(t, false), 0.125)
    t.clock.advance(MINUTE)
    near(await level(t, false), 0.0625)
    t.clock.advance(60 * MINUTE)
    near(await level(t, false), 0)
  })

  rule('L22 it never goes above one', async (t) => {
    for (let n = 0; n < 20; n++) {
      assert.ok((await level(t, true)) <= 1)
      t.clock.advance(5 * SECOND)
    }
    assert.ok((await level(t, true)) > 0.9)
  })

  rule('L22 reading changes nothing', async (t) => {
    await level(t, true)
    for (let n = 0; n < 10; n++) {
      t.clock.advance(6 * SECOND)
      await level(t, false)
    }
    near(await level(t, false), 0.125)
  })

  rule('L22 flows are apart, several in one call', async (t) => {
    await level(t, true, 'a')
    const flows = [
      { flow: 'a', raise: false },
      { flow: 'b', raise: true },
      { flow: 'c', raise: false },
    ]
    const { levels } = await t.store.pressure({ flows })
    assert.deepEqual(
      levels.map((each) => Math.round(each * 100)),
      [25, 25, 0],
    )
  })
}
