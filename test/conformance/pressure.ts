// L22: the store keeps a level of pressure per flow. It rises by a quarter, halves every minute, and never exceeds one.
import assert from 'node:assert/strict'
import { assertSingle, type ConformanceStage, type Suite } from './stage.ts'
import { MINUTE, SECOND } from './builders.ts'

async function readLevel(t: ConformanceStage, raise: boolean, flow = 'flow'): Promise<number> {
  return assertSingle((await t.store.updatePressure({ flows: [{ flow, raise }] })).levels)
}

function assertNear(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) < 0.001, `${actual} is about ${expected}`)
}

export const pressure: Suite = (rule) => {
  rule('L22 a flow that was never raised has level 0', async (t) => {
    assert.equal(await readLevel(t, false), 0)
  })

  rule('L22 a raise adds a quarter', async (t) => {
    assertNear(await readLevel(t, true), 0.25)
    assertNear(await readLevel(t, false), 0.25)
  })

  rule('L22 at most one raise in five seconds counts', async (t) => {
    await readLevel(t, true)
    assertNear(await readLevel(t, true), 0.25)
    t.clock.advance(5 * SECOND - 1)
    assert.ok((await readLevel(t, true)) < 0.25)
    t.clock.advance(1)
    assertNear(await readLevel(t, true), 0.25 * 0.5 ** (5 / 60) + 0.25)
  })

  rule('L22 it halves each minute', async (t) => {
    await readLevel(t, true)
    t.clock.advance(MINUTE)
    assertNear(await readLevel(t, false), 0.125)
    t.clock.advance(MINUTE)
    assertNear(await readLevel(t, false), 0.0625)
    t.clock.advance(60 * MINUTE)
    assertNear(await readLevel(t, false), 0)
  })

  rule('L22 it never goes above one', async (t) => {
    for (let n = 0; n < 20; n++) {
      assert.ok((await readLevel(t, true)) <= 1)
      t.clock.advance(5 * SECOND)
    }
    assert.ok((await readLevel(t, true)) > 0.9)
  })

  rule('L22 reading changes nothing', async (t) => {
    await readLevel(t, true)
    for (let n = 0; n < 10; n++) {
      t.clock.advance(6 * SECOND)
      await readLevel(t, false)
    }
    assertNear(await readLevel(t, false), 0.125)
  })

  rule('L22 flows are apart, several in one call', async (t) => {
    await readLevel(t, true, 'a')
    const flows = [
      { flow: 'a', raise: false },
      { flow: 'b', raise: true },
      { flow: 'c', raise: false },
    ]
    const { levels } = await t.store.updatePressure({ flows })
    assert.deepEqual(
      levels.map((each) => Math.round(each * 100)),
      [25, 25, 0],
    )
  })
}
