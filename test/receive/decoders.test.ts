// R4: few bodies are decompressed at the same time, because a decoder takes memory before its first output.
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { readBoundedBody } from '../../src/receive/body.ts'
import { DecoderPool } from '../../src/receive/decompression.ts'
import { onTheWire, served, until, Wire } from '../http/rig.ts'

const MEGABYTE = 1024 * 1024
/** Tens of bytes that make a decoder allocate a window of 4 MB, and fill it before any output. */
const BOMB = brotliCompressSync(Buffer.alloc(16 * MEGABYTE), { params: { [constants.BROTLI_PARAM_LGWIN]: 22 } })
const LONG = gzipSync(Buffer.alloc(MEGABYTE))

describe('R4 decoders', () => {
  it('run a bounded number of tasks at a time, and the others in the order of arrival', async () => {
    const decoders = new DecoderPool(2)
    const [begun, ends]: [number[], (() => void)[]] = [[], []]
    const task = (n: number) => (): Promise<number> => {
      begun.push(n)
      return new Promise((resolve) => ends.push(() => resolve(n)))
    }
    const all = [0, 1, 2, 3].map((n) => decoders.use(task(n)))
    expect([begun, decoders.waiting]).toEqual([[0, 1], 2])
    ends[1]?.()
    expect(await all[1]).toBe(1)
    expect([begun, decoders.waiting]).toEqual([[0, 1, 2], 1])
    ends[0]?.()
    ends[2]?.()
    await Promise.all([all[0], all[2]])
    ends[3]?.()
    expect(await Promise.all(all)).toEqual([0, 1, 2, 3])
  })

  it('are free again after a task that fails', async () => {
    const decoders = new DecoderPool(1)
    const failing = decoders.use(() => Promise.reject(new Error('no gzip')))
    const next = decoders.use(async () => 'ran')
    await expect(failing).rejects.toThrow('no gzip')
    expect(await next).toBe('ran')
    expect(await decoders.use(async () => 'ran again')).toBe('ran again')
  })

  it.each([
    ['bodies that fit', 'gzip', LONG, 'taken'],
    ['bombs of Brotli with the usual window', 'br', BOMB, 'BODY_TOO_LARGE'],
  ])('unpack at most two of twelve %s at the same time', async (_, encoding, packed, result) => {
    const decoders = new DecoderPool(2)
    const underWay = new Set<number>()
    let most = 0
    const read = async (): Promise<Uint8Array> => packed
    const unpack = async (n: number): Promise<string> => {
      const hold = (): boolean => {
        underWay.add(n)
        most = Math.max(most, underWay.size)
        return true
      }
      const bounds = { maxBody: MEGABYTE, compressed: true }
      const body = await readBoundedBody({ 'content-encoding': encoding }, read, bounds, { reserve: hold, decoders })
      underWay.delete(n)
      return 'code' in body ? body.code : 'taken'
    }
    const results = await Promise.all(Array.from({ length: 12 }, (__, n) => unpack(n)))
    expect(new Set(results)).toEqual(new Set([result]))
    expect(most).toBeLessThanOrEqual(2)
  })

  it('are shared by all requests of a server; a plain body needs none', async () => {
    const decoders = new DecoderPool(1)
    const other = Promise.withResolvers<void>()
    const busy = decoders.use(() => other.promise)
    const { port } = await served({ compressed: true, decoders })
    const body = gzipSync('{}')
    const packed = new Wire(port).write(packedHook(body))
    await until(() => decoders.waiting === 1)
    const plain = new Wire(port).write(onTheWire('{}', { delivery: 'plain' }))
    await plain.answers()
    expect([plain.status, packed.status, decoders.waiting]).toEqual([202, 0, 1])
    other.resolve()
    await Promise.all([busy, packed.answers()])
    expect([packed.status, decoders.waiting]).toEqual([202, 0])
  })
})

/** A request that is signed over the decompressed bytes. */
function packedHook(body: Uint8Array): Buffer {
  const length = `content-length: ${body.length}\r\ncontent-encoding: gzip`
  const head = onTheWire('{}', { delivery: 'packed' })
    .toString()
    .replace(/content-length: \d+/, length)
  return Buffer.concat([Buffer.from(head.slice(0, -2)), body])
}
