// Requests that arrive in one turn of the event loop are looked at together once all of them are read. Between two reads
// and writes of the system the processor has forgotten the code of the steps: one by one, they take three times as long.
export class EventLoopTurn {
  #waiting: (() => void)[] = []

  /** Resolves when the turn in which it was asked for is over. */
  over(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(() => this.#end())
    })
  }

  #end(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}
