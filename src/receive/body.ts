// `readBoundedBody` bounds how much of a request is read, and how long a body may become when decompressed (R4).
import type { ReserveBytes } from './body-budget.ts'
import { DecoderPool, SMALLER_WINDOW, unpack, UNPACKERS, windowFault } from './decompression.ts'
import type { Problem } from './problem.ts'

/** `ReadBody` reads the body. It stops as soon as the body is longer than `most` or there is no room for it. */
export type ReadBody = (most: number, reserve?: ReserveBytes) => Promise<Uint8Array | ReadFailure>

export type ReadFailure = 'too-large' | 'cut-off' | 'too-slow' | 'no-room'

export interface BodyBounds {
  readonly maxBody: number
  /** Whether a compressed body is decompressed. Otherwise it is rejected. */
  readonly compressed: boolean
}

/** `BodyResources` are shared by all bodies that are being read. */
export interface BodyResources {
  readonly reserve?: ReserveBytes
  readonly decoders?: DecoderPool
}

export async function readBoundedBody(
  headers: Readonly<Record<string, string>>,
  read: ReadBody,
  bounds: BodyBounds,
  { reserve = () => true, decoders = new DecoderPool() }: BodyResources = {},
): Promise<Uint8Array | Problem> {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  const unpacker = encoding === 'identity' ? undefined : UNPACKERS.get(encoding)
  if (encoding !== 'identity' && (unpacker === undefined || !bounds.compressed)) {
    const what = `The content encoding ${JSON.stringify(encoding.slice(0, 40))} is not allowed.`
    return {
      code: 'ENCODING_NOT_ALLOWED',
      what,
      fix: 'Send the body uncompressed, or set compressed: true on the source.',
    }
  }
  // A request that declares a body that is too long is rejected without reading it.
  if (Number(headers['content-length'] ?? 0) > bounds.maxBody) return tooLarge(bounds)
  const body = await read(bounds.maxBody, reserve)
  if (typeof body === 'string') return toReadProblem(body, bounds)
  if (unpacker === undefined) return body
  const what = encoding === 'br' ? windowFault(body, bounds.maxBody) : undefined
  if (what !== undefined) return { code: 'ENCODING_NOT_ALLOWED', what, fix: SMALLER_WINDOW }
  try {
    const unpacked = await decoders.use(() => unpack(unpacker, body, bounds.maxBody, reserve))
    return typeof unpacked === 'string' ? toReadProblem(unpacked, bounds) : unpacked
  } catch {
    return {
      code: 'ENCODING_BROKEN',
      what: `The body is not valid ${encoding}.`,
      fix: 'Check how the sender compresses the body.',
    }
  }
}

function toReadProblem(why: ReadFailure, bounds: BodyBounds): Problem {
  if (why === 'no-room') return NO_ROOM
  if (why === 'too-slow') return TOO_SLOW
  if (why === 'cut-off') return CUT_OFF
  return tooLarge(bounds)
}

export const TOO_SLOW: Problem = {
  code: 'REQUEST_TOO_SLOW',
  what: 'The request took too long to arrive.',
  fix: 'Check the network between the sender and this process.',
}

const CUT_OFF: Problem = {
  code: 'BODY_CUT_OFF',
  what: 'The body ended too early.',
  fix: 'If app.fetch is mounted in a framework, make sure that nothing reads the body before it; otherwise send it again.',
}

const NO_ROOM: Problem = {
  code: 'BUSY',
  what: 'Too many long bodies are being received.',
  fix: 'Check who sends them. Lower maxBody of sources that need less, or spread the load.',
  retryAfter: 1_000,
}

function tooLarge({ maxBody }: BodyBounds): Problem {
  const what = `The body is longer than ${maxBody} bytes.`
  return { code: 'BODY_TOO_LARGE', what, fix: 'Raise maxBody of the source to accept such bodies.' }
}
