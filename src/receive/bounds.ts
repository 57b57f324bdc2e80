// How much of a request is read at all, and how much it may become when it is unpacked (R4).
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import type { Problem } from './problem.ts'

/** Reads the body, and stops as soon as it is longer than this. */
export type ReadBody = (most: number) => Promise<Uint8Array | 'too-large' | 'cut-off'>

export interface Bounds {
  readonly maxBody: number
  /** Whether a packed body is unpacked; else it is refused. */
  readonly compressed: boolean
}

type Unpack = (packed: Uint8Array, options: { readonly maxOutputLength: number }) => Promise<Uint8Array>

const UNPACK: ReadonlyMap<string, Unpack> = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

export async function boundedBody(
  headers: Readonly<Record<string, string>>,
  read: ReadBody,
  bounds: Bounds,
): Promise<Uint8Array | Problem> {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  const unpack = encoding === 'identity' ? undefined : UNPACK.get(encoding)
  if (encoding !== 'identity' && (unpack === undefined || !bounds.compressed)) {
    const what = `The body is packed as ${JSON.stringify(encoding.slice(0, 40))}.`
    return { code: 'ENCODING_NOT_ALLOWED', what, fix: 'Send it unpacked, or set compressed: true on the source.' }
  }
  // Who says beforehand that it is too long is not listened to.
  if (Number(headers['content-length'] ?? 0) > bounds.maxBody) return tooLarge(bounds)
  const body = await read(bounds.maxBody)
  if (body === 'too-large') return tooLarge(bounds)
  if (body === 'cut-off') {
    const fix = 'If app.fetch is mounted in a framework, see that nothing reads the body before it; else send it again.'
    return { code: 'BODY_CUT_OFF', what: 'The body ended too early.', fix }
  }
  if (unpack === undefined) return body
  try {
    return await unpack(body, { maxOutputLength: bounds.maxBody })
  } catch (error) {
    if (isTooLong(error)) return tooLarge(bounds)
    return { code: 'ENCODING_BROKEN', what: `The body is no ${encoding}.`, fix: 'Look at how the body was packed.' }
  }
}

function tooLarge({ maxBody }: Bounds): Problem {
  const what = `The body is longer than ${maxBody} bytes.`
  return { code: 'BODY_TOO_LARGE', what, fix: 'Raise maxBody of the source, if such bodies are to be taken.' }
}

function isTooLong(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}
