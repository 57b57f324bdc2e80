// How much of all bodies together may be in memory, while they are read and until they are answered (R4).
const ROOM = 256 * 1024 * 1024
/** Of each body: what fits a usual webhook finds room however much others send. */
const UNCOUNTED = 64 * 1024

/** Whether there is room for so many more bytes of this body. */
export type Hold = (bytes: number) => boolean

export class BodyRoom {
  readonly #most: number
  #held = 0

  constructor(most: number = ROOM) {
    this.#most = most
  }

  get held(): number {
    return this.#held
  }

  /** False: there is no room, and nothing is held. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#most) return false
    this.#held += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#held -= bytes
  }
}

/** One body, from its first byte until its request is answered. */
export class HeldBody {
  readonly #room: BodyRoom
  #bytes = 0
  #counted = 0

  constructor(room: BodyRoom) {
    this.#room = room
  }

  readonly hold: Hold = (bytes) => {
    this.#bytes += bytes
    if (this.#bytes <= UNCOUNTED) return true
    const more = this.#bytes - UNCOUNTED - this.#counted
    if (!this.#room.take(more)) return false
    this.#counted += more
    return true
  }

  release(): void {
    this.#room.giveBack(this.#counted)
    this.#counted = 0
  }
}
