// Small bodies that decompress to 64 MB.
import { buffer } from 'node:stream/consumers'
import { Readable } from 'node:stream'
import { brotliCompressSync, constants, createGzip, deflateSync } from 'node:zlib'

export const BOMBS = ['gzip', 'deflate', 'br'] as const

const SIZE = 64 * 1024 * 1024
const ZEROS = Buffer.alloc(1024 * 1024)

export async function bombOf(name: (typeof BOMBS)[number]): Promise<Buffer> {
  const zeros = Readable.from(Array.from({ length: SIZE / ZEROS.length }, () => ZEROS))
  if (name === 'gzip') return buffer(zeros.pipe(createGzip({ level: 9 })))
  const all = await buffer(zeros)
  if (name === 'deflate') return deflateSync(all, { level: 9 })
  return brotliCompressSync(all, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })
}
