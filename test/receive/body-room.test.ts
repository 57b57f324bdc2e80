// R4: all long bodies in progress share one budget. A request without room gets a 503, and the room is always returned.
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/index.ts'
import { BodyMemory, BodyReservation } from '../../src/receive/body-budget.ts'
import { readBoundedBody, type ReadBody } from '../../src/receive/body.ts'
import { createWebBodyReader } from '../../src/http/web-fetch.ts'
import { SECRET } from './scene.ts'
import { onTheWire, served, until, Wire } from '../http/rig.ts'

const UNCOUNTED = 64 * 1024
const ROOM = 100_000
const BOUNDS = { maxBody: 1_000_000, compressed: true }

function bodyOf(bytes: Uint8Array): ReadBody {
  return async (_most, hold) => (hold?.(bytes.length) === false ? 'no-room' : bytes)
}

describe('the body budget', () => {
  it('counts the bytes of each body beyond the first 64 KB, and gets all of them back', () => {
    const room = new BodyMemory(ROOM)
    const [one, other] = [new BodyReservation(room, '192.0.2.1'), new BodyReservation(room, '192.0.2.2')]
    expect([one.reserve(UNCOUNTED), room.reserved]).toEqual([true, 0])
    expect([one.reserve(1), one.reserve(ROOM - 1), room.reserved]).toEqual([true, true, ROOM])
    expect([other.reserve(UNCOUNTED), other.reserve(1), room.reserved]).toEqual([true, false, ROOM])
    other.release()
    expect(room.reserved).toBe(ROOM)
    one.release()
    one.release()
    expect([room.reserved, new BodyReservation(room, '').reserve(UNCOUNTED + ROOM)]).toEqual([0, true])
  })

  it('of one address is a quarter, however many bodies it sends; the rest is for others', () => {
    const room = new BodyMemory(ROOM)
    const held = (network: string, bytes: number): boolean =>
      new BodyReservation(room, network).reserve(UNCOUNTED + bytes)
    expect(Array.from({ length: 6 }, () => held('192.0.2.1', ROOM / 8))).toEqual([true, true, ...Array(4).fill(false)])
    expect([held('192.0.2.2', ROOM / 4), held('192.0.2.2', 1), room.reserved]).toEqual([true, false, ROOM / 2])
    expect([held('192.0.2.1', 0), held('192.0.2.3', ROOM / 4), held('192.0.2.4', ROOM / 4)]).toEqual([true, true, true])
    expect(held('192.0.2.5', 1)).toBe(false)
  })

  it('may be used completely by a body that is the only one of its address', () => {
    const room = new BodyMemory(ROOM)
    const [one, other] = [new BodyReservation(room, '192.0.2.1'), new BodyReservation(room, '192.0.2.1')]
    expect([one.reserve(UNCOUNTED + ROOM / 2), one.reserve(ROOM / 4)]).toEqual([true, true])
    expect([other.reserve(UNCOUNTED), other.reserve(1), one.reserve(ROOM / 4)]).toEqual([true, false, true])
    one.release()
    expect([room.reserved, other.reserve(ROOM / 2)]).toEqual([0, true])
  })

  it('also counts the decompressed bytes of a body', async () => {
    const room = new BodyMemory(ROOM)
    const held = new BodyReservation(room, '')
    const packed = gzipSync(Buffer.alloc(UNCOUNTED + ROOM + 1))
    const answer = await readBoundedBody({ 'content-encoding': 'gzip' }, bodyOf(packed), BOUNDS, held)
    expect(answer).toMatchObject({ code: 'BUSY' })
    held.release()
    expect(room.reserved).toBe(0)
  })

  it('counts decompressed bytes as they come out, and nothing is decompressed beyond it', async () => {
    const asked: number[] = []
    const room = new BodyReservation(new BodyMemory(ROOM), '')
    const hold = (bytes: number): boolean => asked.push(bytes) > 0 && room.reserve(bytes)
    const packed = gzipSync(Buffer.alloc(32 * 1024 * 1024))
    const bounds = { ...BOUNDS, maxBody: 64 * 1024 * 1024 }
    const answer = await readBoundedBody({ 'content-encoding': 'gzip' }, bodyOf(packed), bounds, { reserve: hold })
    expect(answer).toMatchObject({ code: 'BUSY' })
    expect(asked.reduce((sum, bytes) => sum + bytes)).toBeLessThan(4 * (ROOM + UNCOUNTED))
  })

  it('counts each chunk of a web request', async () => {
    const held = new BodyReservation(new BodyMemory(ROOM), '')
    const read = createWebBodyReader(
      new Request('http://x', { method: 'POST', body: Buffer.alloc(UNCOUNTED + ROOM + 1) }),
      systemClock,
    )
    expect(await readBoundedBody({}, read, BOUNDS, held)).toMatchObject({ code: 'BUSY', retryAfter: 1_000 })
  })
})

const LONG = JSON.stringify({ text: 'x'.repeat(UNCOUNTED + 20_000) })
const LONGER = JSON.stringify({ text: 'x'.repeat(UNCOUNTED + ROOM) })

/** A body without a content-length. */
function inChunks(body: string): string {
  const head = onTheWire('')
    .toString()
    .replace(/content-length.*\r\n/, 'transfer-encoding: chunked\r\n')
  return `${head}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
}

describe('a server', () => {
  it('responds with 503 and Retry-After while the budget is used up, but accepts short bodies', async () => {
    const room = new BodyMemory(30_000)
    const { port } = await served({ room })
    const first = new Wire(port).write(onTheWire(LONG, { delivery: '1' }).subarray(0, -10))
    await until(() => room.reserved > 0)
    const second = new Wire(port).write(onTheWire(LONG, { delivery: '2' }))
    const text = await second.answers()
    expect([second.status, /^retry-after: (\d+)\r$/m.exec(text)?.[1]]).toEqual([503, '1'])
    expect(text).toContain('"BUSY"')
    await second.write(onTheWire('{}', { delivery: '3' })).answers(2)
    expect(second.status).toBe(202)
    await first.write(onTheWire(LONG, { delivery: '1' }).subarray(-10)).answers()
    expect([first.status, room.reserved]).toEqual([202, 0])
    await second.write(onTheWire(LONG, { delivery: '2' })).answers(3)
    expect(second.status).toBe(202)
  })

  it.each<readonly [string, number, string]>([
    ['forged', 401, onTheWire(LONG, { secret: `not ${SECRET}` }).toString()],
    ['no JSON', 400, onTheWire(LONG.slice(1)).toString()],
    ['too long', 413, inChunks(LONGER)],
  ])('gives it back after one that is %s', async (_, status, sent) => {
    const room = new BodyMemory()
    const { port } = await served({ room, maxBody: 100_000 })
    const wire = new Wire(port).write(sent)
    await wire.answers()
    expect([wire.status, room.reserved]).toEqual([status, 0])
  })

  it('gets the room back after a client disconnects in the middle', async () => {
    const room = new BodyMemory()
    const { port, refused } = await served({ room })
    const wire = new Wire(port).write(onTheWire(LONG).subarray(0, -10))
    await until(() => room.reserved > 0)
    wire.socket.destroy()
    await until(() => refused.list('github').length > 0)
    expect([refused.list('github')[0]?.code, room.reserved]).toEqual(['BODY_CUT_OFF', 0])
  })
})
