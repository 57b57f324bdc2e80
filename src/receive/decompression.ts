// This file decompresses bodies, and bounds the memory that decoders take (R4).
import type { Duplex } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { ReserveBytes } from './body-budget.ts'

type Unpacker = (options: { readonly chunkSize: number }) => Duplex

export const UNPACKERS: ReadonlyMap<string, Unpacker> = new Map<string, Unpacker>([
  ['gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
])
export const SMALLER_WINDOW = 'Compress with a window of at most 4 MB (lgwin 22), or raise maxBody of the source.'
const CHUNK = 64 * 1024

/** `unpack` reserves memory as output arrives: the decompressed length is not known beforehand. */
export async function unpack(
  unpacker: Unpacker,
  packed: Uint8Array,
  most: number,
  reserve: ReserveBytes,
): Promise<Uint8Array | 'too-large' | 'no-room'> {
  const chunks: Buffer[] = []
  let length = 0
  const unpacking = unpacker({ chunkSize: CHUNK })
  unpacking.end(packed)
  try {
    for await (const chunk of unpacking as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > most) return 'too-large'
      if (!reserve(chunk.length)) return 'no-room'
      chunks.push(chunk)
    }
    return Buffer.concat(chunks, length)
  } finally {
    // `destroy` frees the memory of the decoder before the next one starts, not only at the next garbage collection.
    unpacking.destroy()
  }
}

/** Node decompresses in four threads: further decoders would hold memory and wait. */
const MAX_DECODERS = 4

/** `DecoderPool` bounds the memory of decoders. A Brotli decoder allocates a window of up to 16 MB and tables of up
    to 4 MB before it returns the first byte, however short the compressed body is. A body budget cannot foresee
    that. */
export class DecoderPool {
  readonly #maxActive: number
  readonly #waiting: (() => void)[] = []
  #active = 0

  constructor(most: number = MAX_DECODERS) {
    this.#maxActive = most
  }

  /** `waiting` is the number of tasks that wait for a decoder. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** `use` runs the task as soon as a decoder is free. Tasks start in the order in which they were passed in. */
  async use<T>(task: () => Promise<T>): Promise<T> {
    if (this.#active < this.#maxActive) this.#active++
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#active--
      // The next task takes over this decoder, so that no other task takes it first.
      else next()
    }
  }
}

/** The default window of common encoders, for bodies of any size. */
const DEFAULT_WINDOW = 4 * 1024 * 1024

/** `windowFault` returns why the window is rejected. No sender needs a window larger than the longest allowed body. */
export function windowFault(packed: Uint8Array, maxBody: number): string | undefined {
  const most = Math.max(DEFAULT_WINDOW, maxBody)
  const window = readBrotliWindow(packed)
  return window > most ? `The Brotli window is ${window} bytes; at most ${most} are allowed.` : undefined
}

/** `readBrotliWindow` reads the window size that a Brotli stream asks its decoder for, from the first byte (RFC 7932,
    section 9.1). A stream of some fifty bytes can ask for 16 MB, and have the decoder fill it before it returns a byte.
    The decoder rejects streams with an invalid header. */
export function readBrotliWindow([first = 0]: Uint8Array): number {
  if ((first & 1) === 0) return 2 ** 16
  const large = (first >> 1) & 7
  if (large > 0) return 2 ** (17 + large)
  const small = (first >> 4) & 7
  return small === 0 ? 2 ** 17 : 2 ** (8 + small)
}
