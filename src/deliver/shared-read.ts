/** `SharedRead` reads once for many callers: calls during a read share the next one, which starts after their changes. */
export class SharedRead<T> {
  readonly #read: () => Promise<T>
  #reading: Promise<unknown> = Promise.resolve()
  #queued: Promise<T> | undefined

  constructor(read: () => Promise<T>) {
    this.#read = read
  }

  next(): Promise<T> {
    this.#queued ??= this.#reading.then(() => {
      this.#queued = undefined
      const reading = this.#read()
      this.#reading = reading.catch(() => {})
      return reading
    })
    return this.#queued
  }
}
