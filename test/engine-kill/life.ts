// One life of a process that is killed: its start, its messages, and its death.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { now } from './load.ts'

/** `Life` is one life of the process. */
export class Life {
  readonly #child: ChildProcess
  readonly #exit: Promise<void>
  readonly #opened = Promise.withResolvers<void>()
  #errors = ''
  #killed = false

  constructor(program: string, compiled: string, args: readonly string[]) {
    const env = { ...process.env, NODE_COMPILE_CACHE: compiled }
    this.#child = fork(program, args, { env, execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    this.#child.once('message', () => this.#opened.resolve())
    this.#exit = once(this.#child, 'close').then(([code, signal]: unknown[]) => {
      if (code === 0 || this.#killed) return
      throw new Error(`The process ended by itself (${String(code ?? signal)}): ${this.#errors}`)
    })
    // A caller awaits this promise later.
    this.#exit.catch(() => {})
  }

  /** Whether the process works on the file, or has ended and why. */
  get opened(): Promise<void> {
    return Promise.race([this.#opened.promise, this.#exit])
  }

  /** Resolves when the process exits without a kill. */
  get ended(): Promise<void> {
    return this.#exit
  }

  /** Sends a message to the process. */
  tell(what: string): void {
    this.#child.send(what)
  }

  /** `said` resolves when the process sends a message after it has opened the file; it rejects if the process exits. */
  async said(): Promise<void> {
    await this.opened
    await Promise.race([once(this.#child, 'message'), this.#exit])
  }

  /** Handles later messages. */
  hear(said: () => void): void {
    this.#child.on('message', said)
  }

  /** Stops the process with a signal that it cannot notice. */
  stop(): void {
    this.#child.kill('SIGSTOP')
  }

  goOn(): void {
    this.#child.kill('SIGCONT')
  }

  /** Kills the process and returns the time: nothing of it happens much later, and its successor cannot have started before. */
  async kill(): Promise<number> {
    if (this.#child.exitCode !== null) await this.#exit
    this.#killed = true
    const at = now()
    this.#child.kill('SIGKILL')
    await this.#exit
    return at
  }
}
