// What happens in one turn of the event loop is looked at together once all of it is read: requests that arrive, and runs that end.
// Between two reads and writes of the system the processor has forgotten the code of the steps: one by one, requests take three
// times as long.
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
