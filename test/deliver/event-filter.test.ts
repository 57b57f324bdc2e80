// Tests that filters of subscribers are bounded, because every event is matched against them while the event loop
// waits.
import { expect, it } from 'vitest'
import { delivery } from './subscriber.ts'

const many = (glob: string, count: number): readonly string[] => Array.from({ length: count }, (_, n) => `${glob}${n}`)

it.each([
  ['a list', ['a'], 'a' as never],
  ['at most 100 globs', many('a', 100), many('a', 101)],
  ['globs of 1 to 256 characters', ['a'.repeat(256)], ['a'.repeat(257)]],
  ['globs of 1 to 256 characters', ['a'], ['']],
  ['globs of 1 to 256 characters', ['a'], [7 as never]],
  ['globs with at most 4 stars each', ['*a*a**a*', '****'], ['*a*a**a*a*']],
  ['globs with at most 100 stars in all', many('*a*b', 50), [...many('*a*b', 50), '*']],
  ['globs with at most 8,192 characters in all', many('a'.repeat(78), 100), many('a'.repeat(90), 100)],
])('a filter must be %s', async (rule, fine, wrong: readonly string[]) => {
  const { endpoint, app } = await delivery()
  const url = 'https://example.com/'
  const { id } = await endpoint({ url, eventFilter: fine })
  expect((await app.endpoints.get(id))?.eventFilter).toEqual(fine)
  const refusal = {
    code: 'ENDPOINT_INVALID',
    message: expect.stringContaining(`eventFilter must be ${rule}`) as string,
  }
  await expect(endpoint({ url, eventFilter: wrong })).rejects.toMatchObject(refusal)
  await expect(app.endpoints.update(id, { eventFilter: wrong })).rejects.toMatchObject(refusal)
})
