// `Program` runs the command line as a user does, and waits for what it prints.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { COMPILED } from './commands-rig.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** A run of the program, and its output so far. */
export class Program {
  readonly #child: ChildProcess
  readonly exit: Promise<number>
  #text = ''
  #heard = Promise.withResolvers<void>()

  constructor(folder: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const { PORT: _, ...rest } = process.env
    const all = { ...rest, ...env, NODE_NO_WARNINGS: '1', NODE_COMPILE_CACHE: COMPILED }
    this.#child = spawn(process.execPath, [MAIN, ...args], { cwd: folder, env: all, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#text += text
        this.#heard.resolve()
        this.#heard = Promise.withResolvers()
      })
    }
    this.exit = once(this.#child, 'close').then(([code]) => code as number)
    onTestFinished(async () => {
      this.#child.kill('SIGTERM')
      await this.exit
    })
  }

  get text(): string {
    return this.#text
  }

  /** Returns the pattern's group of its n-th match in the output. */
  async said(pattern: RegExp, times = 1): Promise<string> {
    for (;;) {
      const found = [...this.#text.matchAll(new RegExp(pattern, 'g'))]
      if (found.length >= times) return found[times - 1]?.[1] ?? ''
      const isOver = await Promise.race([this.#heard.promise.then(() => false), this.exit.then(() => true)])
      if (isOver) throw new Error(`It ended without saying ${pattern}: ${this.#text}`)
    }
  }

  stop(...signals: readonly NodeJS.Signals[]): Promise<number> {
    for (const signal of signals.length === 0 ? (['SIGTERM'] as const) : signals) this.#child.kill(signal)
    return this.exit
  }
}
