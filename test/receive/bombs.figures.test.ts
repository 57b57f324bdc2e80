// R4: decompressing a body takes neither memory nor time once it is known to be too large.
import { expect, it } from 'vitest'
import { readBoundedBody } from '../../src/receive/body.ts'
import { BOMBS, bombOf } from './bombs.ts'

const PACKED = { maxBody: 100_000, compressed: true }
const AT_ONCE = 16

it.each(BOMBS)('16 bombs of %s at once take under 64 MB and under 3 s', async (name) => {
  const bomb = await bombOf(name)
  const before = process.memoryUsage().rss
  const began = performance.now()
  const refused = await Promise.all(
    Array.from({ length: AT_ONCE }, () => readBoundedBody({ 'content-encoding': name }, async () => bomb, PACKED)),
  )
  expect(refused).toEqual(refused.map(() => expect.objectContaining({ code: 'BODY_TOO_LARGE' })))
  // Decompressed they are a gigabyte, which takes seconds.
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
  expect(performance.now() - began).toBeLessThan(3_000)
})
