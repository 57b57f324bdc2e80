// L11: a key is any well-formed text up to 16 KB, each key is a lane of its own, and each place ends by itself.
import assert from 'node:assert/strict'
import { laneId } from '../../model/identity.ts'
import { keys, type Stage, type Suite } from './stage.ts'
import { done, retry } from './vocabulary.ts'

// Repeated letters compress and pass where random ones do not fit an index; the seed keeps the test the same each time.
function randomText(length: number): string {
  let seed = 20_261_115
  let text = ''
  while (text.length < length) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    text += String.fromCharCode(33 + ((seed >>> 16) % 94))
  }
  return text
}

/** The key comes back exactly, from the claim and from the records. */
async function roundTrips(t: Stage, key: string): Promise<void> {
  await t.append(`of ${key.slice(0, 10)}`, { key, quiet: 10 })
  const lane = await t.lane(key)
  assert.equal(lane?.key, key)
  const run = await t.dueIn(10)
  assert.equal(run.key, key)
  assert.equal(run.lane, laneId('flow', key))
  await t.end(run)
}

export const laneKeys: Suite = (rule) => {
  rule('L11 an event with several keys has a place in each lane', async (t) => {
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
      (await t.record('a'))?.lanes.toSorted(),
      ['x', 'y', 'z'].map((key) => laneId('flow', key)).toSorted(),
    )
  })

  rule('L11 each place ends by itself', async (t) => {
    await t.append('a', { keys: ['x', 'y'] })
    const [x, y] = await t.claim()
    assert.ok(x && y)
    await t.end(x, done)
    await t.end(y, retry(100))
    const back = await t.dueIn(100)
    assert.deepEqual([back.key, t.names(back)], ['y', ['a']])
    assert.ok(back.events[0]?.body)
  })

  rule('L11 the same key twice is one place', async (t) => {
    await t.append('a', { keys: ['x', 'x'] })
    const run = await t.next()
    assert.deepEqual(t.names(run), ['a'])
    await t.end(run)
    await t.nothing()
  })

  rule('L11 the empty text is a key', async (t) => {
    await roundTrips(t, '')
    await t.append('a', { key: '' })
    await t.append('b', { key: ' ' })
    assert.deepEqual(keys(await t.claim()), ['', ' '])
  })

  rule('L11 a key of 16 KB of random text is a key, and one that differs in its last letter is another', async (t) => {
    const text = randomText(16_384)
    await roundTrips(t, text)
    const near = `${text.slice(0, -1)}${text.endsWith('!') ? '"' : '!'}`
    await t.append('a', { key: text })
    await t.append('b', { key: near })
    assert.deepEqual(keys(await t.claim()), [text, near])
  })

  rule('L11 a key may hold NUL, quotes, emoji and other scripts', async (t) => {
    for (const key of ['\0', 'a\0b', 'a', 'a\0', `'"\\%_{}$1;--`, '👩‍👩‍👧‍👦', 'ключ', '\u{10ffff}', '\n\t', '__proto__']) {
      await roundTrips(t, key)
    }
  })

  rule('L11 keys that only look alike are different lanes', async (t) => {
    const alike = ['é', 'e\u0301', 'É', 'a', 'a\0', 'a ', '1', '01']
    for (const key of alike) await t.append(`of ${key}`, { key })
    assert.deepEqual(keys(await t.claim()), alike)
  })

  rule('L11 the same key in two flows is two lanes', async (t) => {
    await t.append('a', {
      places: [
        { flow: 'flow', key: 'k' },
        { flow: 'mail', key: 'k' },
      ],
    })
    const run = await t.next()
    assert.deepEqual(t.names(await t.next({ flow: 'mail' })), ['a'])
    await t.end(run)
  })
}
