// How much of a request is read at all, and how much it may become when it is unpacked (R4).
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import type { Hold } from './body-room.ts'
import type { Problem } from './problem.ts'

/** Reads the body, and stops as soon as it is longer than this, or there is no room for it. */
export type ReadBody = (most: number, hold?: Hold) => Promise<Uint8Array | Unread>

export type Unread = 'too-large' | 'cut-off' | 'no-room'

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
  hold: Hold = () => true,
): Promise<Uint8Array | Problem> {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  const unpack = encoding === 'identity' ? undefined : UNPACK.get(encoding)
  if (encoding !== 'identity' && (unpack === undefined || !bounds.compressed)) {
    const what = `The body is packed as ${JSON.stringify(encoding.slice(0, 40))}.`
    return { code: 'ENCODING_NOT_ALLOWED', what, fix: 'Send it unpacked, or set compressed: true on the source.' }
  }
  // Who says beforehand that it is too long is not listened to.
  if (Number(headers['content-length'] ?? 0) > bounds.maxBody) return tooLarge(bounds)
  const body = await read(bounds.maxBody, hold)
  if (body === 'too-large') return tooLarge(bounds)
  if (body === 'no-room') return NO_ROOM
  if (body === 'cut-off') {
    const fix = 'If app.fetch is mounted in a framework, see that nothing reads the body before it; else send it again.'
    return { code: 'BODY_CUT_OFF', what: 'The body ended too early.', fix }
  }
  if (unpack === undefined) return body
  try {
    const unpacked = await unpack(body, { maxOutputLength: bounds.maxBody })
    return hold(unpacked.length) ? unpacked : NO_ROOM
  } catch (error) {
    if (isTooLong(error)) return tooLarge(bounds)
    return { code: 'ENCODING_BROKEN', what: `The body is no ${encoding}.`, fix: 'Look at how the body was packed.' }
  }
}

const NO_ROOM: Problem = {
  code: 'BUSY',
  what: 'Too many long bodies are under way just now.',
  fix: 'Look at who sends them: lower maxBody of sources that need less, or spread the load.',
  after: 1_000,
}

function tooLarge({ maxBody }: Bounds): Problem {
  const what = `The body is longer than ${maxBody} bytes.`
  return { code: 'BODY_TOO_LARGE', what, fix: 'Raise maxBody of the source, if such bodies are to be taken.' }
}

function isTooLong(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}
