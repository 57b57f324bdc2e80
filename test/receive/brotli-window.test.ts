// R4: a Brotli stream may use a window as large as the longest body, and no larger.
import { brotliCompressSync, constants } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { readBoundedBody } from '../../src/receive/body.ts'
import { readBrotliWindow } from '../../src/receive/decompression.ts'

const MEGABYTE = 1024 * 1024

/** Long enough that the encoder does not choose a smaller window by itself. */
function packedWith(lgwin: number): Uint8Array {
  const params = { [constants.BROTLI_PARAM_LGWIN]: lgwin, [constants.BROTLI_PARAM_QUALITY]: 5 }
  return brotliCompressSync(Buffer.alloc(16 * MEGABYTE), { params })
}

async function resultOf(packed: Uint8Array, maxBody: number): Promise<string> {
  const read = async (): Promise<Uint8Array> => packed
  const body = await readBoundedBody({ 'content-encoding': 'br' }, read, { maxBody, compressed: true })
  return 'code' in body ? body.code : 'taken'
}

describe('R4 the window of a Brotli stream', () => {
  it.each([10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24])('of 2^%d bytes is read correctly', (lgwin) => {
    expect(readBrotliWindow(packedWith(lgwin))).toBe(2 ** lgwin)
  })

  it('above 4 MB is rejected unread if bodies must be shorter, and otherwise accepted', async () => {
    expect(await resultOf(packedWith(24), MEGABYTE)).toBe('ENCODING_NOT_ALLOWED')
    expect(await resultOf(packedWith(23), 8 * MEGABYTE - 1)).toBe('ENCODING_NOT_ALLOWED')
    expect(await resultOf(packedWith(24), 16 * MEGABYTE)).toBe('taken')
    expect(await resultOf(packedWith(22), MEGABYTE)).toBe('BODY_TOO_LARGE')
  })

  it("has the decoder's value if the bytes are no Brotli stream", async () => {
    for (const bytes of [[], [0x11], [0xff, 0xff]]) {
      expect(await resultOf(Uint8Array.from(bytes), MEGABYTE)).not.toBe('taken')
    }
  })
})
