// How much of a request is read at all, and how much it may become when it is unpacked (R4).
import type { Duplex } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Hold } from './body-room.ts'
import type { Problem } from './problem.ts'

/** Reads the body, and stops as soon as it is longer than this, or there is no room for it. */
export type ReadBody = (most: number, hold?: Hold) => Promise<Uint8Array | Unread>

export type Unread = 'too-large' | 'cut-off' | 'too-slow' | 'no-room'

export interface Bounds {
  readonly maxBody: number
  /** Whether a packed body is unpacked; else it is refused. */
  readonly compressed: boolean
}

type Unpacker = (options: { readonly chunkSize: number }) => Duplex

const UNPACKERS: ReadonlyMap<string, Unpacker> = new Map<string, Unpacker>([
  ['gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
])
const CHUNK = 64 * 1024

export async function boundedBody(
  headers: Readonly<Record<string, string>>,
  read: ReadBody,
  bounds: Bounds,
  hold: Hold = () => true,
): Promise<Uint8Array | Problem> {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  const unpacker = encoding === 'identity' ? undefined : UNPACKERS.get(encoding)
  if (encoding !== 'identity' && (unpacker === undefined || !bounds.compressed)) {
    const what = `The body is packed as ${JSON.stringify(encoding.slice(0, 40))}.`
    return { code: 'ENCODING_NOT_ALLOWED', what, fix: 'Send it unpacked, or set compressed: true on the source.' }
  }
  // Who says beforehand that it is too long is not listened to.
  if (Number(headers['content-length'] ?? 0) > bounds.maxBody) return tooLarge(bounds)
  const body = await read(bounds.maxBody, hold)
  if (typeof body === 'string') return unreadBy(body, bounds)
  if (unpacker === undefined) return body
  try {
    const unpacked = await unpackedBy(unpacker, body, bounds.maxBody, hold)
    return typeof unpacked === 'string' ? unreadBy(unpacked, bounds) : unpacked
  } catch {
    return { code: 'ENCODING_BROKEN', what: `The body is no ${encoding}.`, fix: 'Look at how the body was packed.' }
  }
}

/** What comes out finds room as it comes: of many that unpack at once, none is known to be long before it is. */
async function unpackedBy(
  unpacker: Unpacker,
  packed: Uint8Array,
  most: number,
  hold: Hold,
): Promise<Uint8Array | Unread> {
  const chunks: Buffer[] = []
  let length = 0
  const unpacking = unpacker({ chunkSize: CHUNK })
  unpacking.end(packed)
  for await (const chunk of unpacking as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > most) return 'too-large'
    if (!hold(chunk.length)) return 'no-room'
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
}

function unreadBy(why: Unread, bounds: Bounds): Problem {
  if (why === 'no-room') return NO_ROOM
  if (why === 'too-slow') return TOO_SLOW
  if (why === 'cut-off') return CUT_OFF
  return tooLarge(bounds)
}

export const TOO_SLOW: Problem = {
  code: 'REQUEST_TOO_SLOW',
  what: 'The request did not come in time.',
  fix: 'Look at the way between the sender and this process.',
}

const CUT_OFF: Problem = {
  code: 'BODY_CUT_OFF',
  what: 'The body ended too early.',
  fix: 'If app.fetch is mounted in a framework, see that nothing reads the body before it; else send it again.',
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
