// Measures the memory that rejected bodies take: one of hundreds of megabytes, and many that decompress to megabytes.
import { once } from 'node:events'
import { brotliCompressSync, constants } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { unverified } from '../../src/sources/credentials.ts'
import { github } from '../../src/sources/github.ts'
import { withGithub } from '../receive/scene.ts'
import { listening, onTheWire, Wire } from './rig.ts'

const MEGABYTE = 1024 * 1024
const CHUNK = Buffer.alloc(64 * 1024, 'x')

/** Writes this many bytes, chunked or not, as fast as the server reads them. Returns the growth of the process. */
async function streamed(wire: Wire, bytes: number, isChunked: boolean): Promise<number> {
  let largest = 0
  const head = isChunked ? 'transfer-encoding: chunked' : `content-length: ${bytes}`
  wire.write(`POST /in/open HTTP/1.1\r\nhost: x\r\n${head}\r\n\r\n`)
  for (let sent = 0; sent < bytes; sent += CHUNK.length) {
    if (isChunked) wire.socket.write(`${CHUNK.length.toString(16)}\r\n`)
    wire.socket.write(CHUNK)
    if (isChunked) wire.socket.write('\r\n')
    if (wire.socket.writableNeedDrain) await once(wire.socket, 'drain')
    if (sent % (5 * MEGABYTE) === 0) largest = Math.max(largest, process.memoryUsage().rss)
  }
  if (isChunked) wire.write('0\r\n\r\n')
  return largest
}

describe('a body', () => {
  it.each([
    ['that says so', false],
    ['in chunks', true],
  ])('of 50 MB or 200 MB, %s gets a 413 that the sender can read, and takes no memory', async (_, isChunked) => {
    const { port } = await listening({}, (app) => withGithub(app).source('open', unverified({ verify: 'none' })))
    const wire = new Wire(port)
    const once50 = await streamed(wire, 50 * MEGABYTE, isChunked)
    expect((await streamed(wire, 200 * MEGABYTE, isChunked)) - once50).toBeLessThan(100 * MEGABYTE)
    await wire.answers(2)
    expect(wire.status).toBe(413)
    // The server still accepts a good request.
    await wire.write(onTheWire('{}')).answers(3)
    expect(wire.status).toBe(202)
  })
})

/** Tens of bytes that make a decoder allocate its window, and fill it before any output. */
function bombOf(lgwin: number): Uint8Array<ArrayBuffer> {
  const params = { [constants.BROTLI_PARAM_LGWIN]: lgwin }
  return Uint8Array.from(brotliCompressSync(Buffer.alloc(16 * MEGABYTE), { params }))
}

it.each([22, 24])(
  'R4 600 unsigned bombs of Brotli at once, with windows of 2^%d bytes, take under 400 MB',
  async (lgwin) => {
    const packed = { compressed: true, maxBody: MEGABYTE }
    const { url } = await listening({}, (app) => app.source('github', github({ secret: 's' }), packed))
    const before = process.memoryUsage().rss
    let largest = before
    const watch = setInterval(() => (largest = Math.max(largest, process.memoryUsage().rss)), 1)
    const init = { method: 'POST', headers: { 'content-encoding': 'br' }, body: bombOf(lgwin) }
    const answers = await Promise.all(Array.from({ length: 600 }, () => fetch(`${url}/in/github`, init)))
    clearInterval(watch)
    expect(new Set(answers.map(({ status }) => status))).not.toContain(202)
    expect(largest - before).toBeLessThan(400 * MEGABYTE)
  },
)
