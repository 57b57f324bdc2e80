// `pack` writes the arguments of a script into one buffer, as a MessagePack array of texts. A script call has thousands of arguments,
// and one buffer costs the client, the socket and the server a fraction of them.
import type { RedisArgument } from './client.ts'

const ARRAY_32 = 0xdd
const TEXT_8 = 0xd9
const TEXT_32 = 0xdb
const HEADER = 5
/** A UTF-16 unit takes at most three bytes. */
const BYTES_PER_UNIT = 3

/** The buffer for the next call. It grows to the largest call, up to a bound. */
let scratch: Buffer = Buffer.allocUnsafeSlow(64 * 1024)
const MAX_SCRATCH = 4 * 1024 * 1024

export function pack(args: readonly RedisArgument[]): Buffer {
  let at = HEADER
  let buffer = scratch
  buffer[0] = ARRAY_32
  buffer.writeUInt32BE(args.length, 1)
  for (const arg of args) {
    const most = HEADER + (typeof arg === 'string' ? arg.length * BYTES_PER_UNIT : arg.length)
    if (at + most > buffer.length) buffer = grow(buffer, at, at + most)
    at = typeof arg === 'string' ? writeText(buffer, at, arg) : writeBytes(buffer, at, arg)
  }
  // The call may wait in a queue while the next one is packed.
  return Buffer.from(buffer.subarray(0, at))
}

function grow(buffer: Buffer, used: number, needed: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * buffer.length, needed))
  buffer.copy(larger, 0, 0, used)
  if (larger.length <= MAX_SCRATCH) scratch = larger
  return larger
}

function writeText(buffer: Buffer, at: number, text: string): number {
  // The header is written first, so its size follows from the most that the text may take.
  const size = text.length * BYTES_PER_UNIT < 256 ? 2 : HEADER
  const length = buffer.write(text, at + size)
  return writeHeader(buffer, at, length, size) + length
}

function writeBytes(buffer: Buffer, at: number, bytes: Buffer): number {
  const start = writeHeader(buffer, at, bytes.length, bytes.length < 256 ? 2 : HEADER)
  bytes.copy(buffer, start)
  return start + bytes.length
}

/** Writes the header of a text and returns where the text begins. */
// oxlint-disable-next-line max-params -- the parts of a header
function writeHeader(buffer: Buffer, at: number, length: number, size: number): number {
  if (size === 2) {
    buffer[at] = TEXT_8
    buffer[at + 1] = length
  } else {
    buffer[at] = TEXT_32
    buffer.writeUInt32BE(length, at + 1)
  }
  return at + size
}
