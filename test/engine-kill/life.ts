// One life of a process that is killed: its birth, what it says, and its death.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { now } from './load.ts'

/** One life of the process. */
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
    // Heard of by whoever waits for it.
    this.#exit.catch(() => {})
  }

  /** It works on the file; or it has ended, and why. */
  get opened(): Promise<void> {
    return Promise.race([this.#opened.promise, this.#exit])
  }

  /** Its end, when it ends by itself. */
  get ended(): Promise<void> {
    return this.#exit
  }

  /** Says something to it. */
  tell(what: string): void {
    this.#child.send(what)
  }

  /** `said` resolves when the process says something after it has opened the file; it rejects if the process ends. */
  async said(): Promise<void> {
    await this.opened
    await Promise.race([once(this.#child, 'message'), this.#exit])
  }

  /** For whatever it says later on. */
  hear(said: () => void): void {
    this.#child.on('message', said)
  }

  /** Does nothing from now on, and does not know it. */
  stop(): void {
    this.#child.kill('SIGSTOP')
  }

  goOn(): void {
    this.#child.kill('SIGCONT')
  }

  /** Answers when: nothing of it can have happened much later, and its successor cannot have begun before. */
  async kill(): Promise<number> {
    if (this.#child.exitCode !== null) await this.#exit
    this.#killed = true
    const at = now()
    this.#child.kill('SIGKILL')
    await this.#exit
    return at
  }
}
