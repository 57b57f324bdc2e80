// L11: a key is any well-formed text up to 16 KB. Each key is a lane of its own, and each placement ends by itself.
import assert from 'node:assert/strict'
import { laneId } from '../../src/model/identity.ts'
import { getKeys, type ConformanceStage, type Suite } from './stage.ts'
import { done, retry } from './builders.ts'

// Repeated letters compress, and pass where random letters do not fit an index. The seed makes the test repeatable.
function randomText(length: number): string {
  let seed = 20_261_115
  let text = ''
  while (text.length < length) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    text += String.fromCharCode(33 + ((seed >>> 16) % 94))
  }
  return text
}

/** Asserts that the claim and the records return the key exactly. */
async function assertRoundTrip(t: ConformanceStage, key: string): Promise<void> {
  await t.append(`of ${key.slice(0, 10)}`, { key, quiet: 10 })
  const lane = await t.getLane(key)
  assert.equal(lane?.key, key)
  const run = await t.claimOneAfter(10)
  assert.equal(run.key, key)
  assert.equal(run.lane, laneId('flow', key))
  await t.settleOk(run)
}

export const laneKeys: Suite = (rule) => {
  rule('L11 an event with several keys has a placement in each lane', async (t) => {
    await t.append('a', { keys: ['x', 'y', 'z'] })
    const runs = await t.claim()
    assert.deepEqual(
      runs.map((run) => [run.key, t.names(run)]),
      [
        ['x', ['a']],
        ['y', ['a']],
        ['z', ['a']],
      ],
    )
    assert.deepEqual(
      (await t.getEventRecord('a'))?.lanes.toSorted(),
      ['x', 'y', 'z'].map((key) => laneId('flow', key)).toSorted(),
    )
  })

  rule('L11 each placement ends by itself', async (t) => {
    await t.append('a', { keys: ['x', 'y'] })
    const [x, y] = await t.claim()
    assert.ok(x && y)
    await t.settleOk(x, done)
    await t.settleOk(y, retry(100))
    const back = await t.claimOneAfter(100)
    assert.deepEqual([back.key, t.names(back)], ['y', ['a']])
    assert.ok(back.events[0]?.body)
  })

  rule('L11 the same key twice is one placement', async (t) => {
    await t.append('a', { keys: ['x', 'x'] })
    const run = await t.claimOne()
    assert.deepEqual(t.names(run), ['a'])
    await t.settleOk(run)
    await t.assertNothingReady()
  })

  rule('L11 the empty text is a key', async (t) => {
    await assertRoundTrip(t, '')
    await t.append('a', { key: '' })
    await t.append('b', { key: ' ' })
    assert.deepEqual(getKeys(await t.claim()), ['', ' '])
  })

  rule('L11 a key of 16 KB of random text is a key, and one that differs in its last letter is another', async (t) => {
    const text = randomText(16_384)
    await assertRoundTrip(t, text)
    const near = `${text.slice(0, -1)}${text.endsWith('!') ? '"' : '!'}`
    await t.append('a', { key: text })
    await t.append('b', { key: near })
    assert.deepEqual(getKeys(await t.claim()), [text, near])
  })

  rule('L11 a key may hold NUL, quotes, emoji and other scripts', async (t) => {
    for (const key of ['\0', 'a\0b', 'a', 'a\0', `'"\\%_{}$1;--`, '👩‍👩‍👧‍👦', 'ключ', '\u{10ffff}', '\n\t', '__proto__']) {
      await assertRoundTrip(t, key)
    }
  })

  rule('L11 keys that only look alike are different lanes', async (t) => {
    const alike = ['é', 'e\u0301', 'É', 'a', 'a\0', 'a ', '1', '01']
    for (const key of alike) await t.append(`of ${key}`, { key })
    assert.deepEqual(getKeys(await t.claim()), alike)
  })

  rule('L11 the same key in two flows is two lanes', async (t) => {
    await t.append('a', {
      placements: [
        { flow: 'flow', key: 'k' },
        { flow: 'mail', key: 'k' },
      ],
    })
    const run = await t.claimOne()
    assert.deepEqual(t.names(await t.claimOne({ flow: 'mail' })), ['a'])
    await t.settleOk(run)
  })
}
