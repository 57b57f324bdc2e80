// `DecoderPool` bounds how many bodies are decompressed at the same time (R4).

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
