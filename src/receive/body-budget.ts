// `BodyMemory` bounds the memory of all request bodies together, from reading until the response (R4).
const TOTAL_BYTES = 256 * 1024 * 1024
/** The share of one network: it takes four networks to fill the memory. */
const ADDRESS_SHARE = 1 / 4
/** The uncounted part of each body: a usual webhook always fits, however much others send. */
const UNCOUNTED_BYTES = 64 * 1024

/** `ReserveBytes` returns whether there is room for this many more bytes of the body. */
export type ReserveBytes = (bytes: number) => boolean

export class BodyMemory {
  readonly #maxBytes: number
  readonly #byNetwork = new Map<string, number>()
  #reserved = 0

  constructor(most: number = TOTAL_BYTES) {
    this.#maxBytes = most
  }

  get reserved(): number {
    return this.#reserved
  }

  /** `reserve` returns false, and reserves nothing, if there is no room. All bodies of one network together may hold
      a quarter of the memory. A body that is alone (`own` is all that its network holds) may take more, because one
      body can be longer than that quarter. */
  reserve(network: string, bytes: number, own: number): boolean {
    const held = this.#byNetwork.get(network) ?? 0
    if (this.#reserved + bytes > this.#maxBytes) return false
    if (held > own && held + bytes > this.#maxBytes * ADDRESS_SHARE) return false
    this.#reserved += bytes
    this.#byNetwork.set(network, held + bytes)
    return true
  }

  release(network: string, bytes: number): void {
    this.#reserved -= bytes
    const left = (this.#byNetwork.get(network) ?? 0) - bytes
    if (left > 0) this.#byNetwork.set(network, left)
    else this.#byNetwork.delete(network)
  }
}

/** `BodyReservation` counts one body, from its first byte until the response. */
export class BodyReservation {
  readonly #memory: BodyMemory
  readonly #network: string
  #bytes = 0
  #counted = 0

  constructor(room: BodyMemory, network: string) {
    this.#memory = room
    this.#network = network
  }

  readonly reserve: ReserveBytes = (bytes) => {
    this.#bytes += bytes
    if (this.#bytes <= UNCOUNTED_BYTES) return true
    const more = this.#bytes - UNCOUNTED_BYTES - this.#counted
    if (!this.#memory.reserve(this.#network, more, this.#counted)) return false
    this.#counted += more
    return true
  }

  release(): void {
    if (this.#counted > 0) this.#memory.release(this.#network, this.#counted)
    this.#counted = 0
  }
}
