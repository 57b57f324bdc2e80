// Shared by the tests of commands: runs the real command as a child process, on a real SQLite file and a real server.
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export const MAIN: string = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
const SRC = new URL('../../src/', import.meta.url)
const TOKEN = 'shop-token-0123456789'

/** A compile cache that all runs share, because compiling takes most of the time of a command. */
export const COMPILED: string = fileURLToPath(new URL('../../node_modules/.cache/sluice/compiled', import.meta.url))

/** A port on which nothing listens: without a named server, the commands open the app itself. */
const NOBODY = { PORT: '9' }

/** An app with flows in all states, on a file beside it. Its failing runs succeed once there is a file named `fixed`. */
export const APP = `
import { existsSync } from 'node:fs'
import { Sluice, alerts } from '${new URL('index.ts', SRC).href}'
import { bearer, github } from '${new URL('sources/index.ts', SRC).href}'
console.log('the configuration talks')
const app = new Sluice({ store: 'sqlite:app.db', poll: '50ms', process: 'cli-test', admin: { open: 'loopback' } })
const keyOf = (event: { data: unknown }): string => String((event.data as { user?: string }).user ?? 'nobody')
app.limit('calls', { rate: 1000, per: '1s' })
app.alert('many-dead', { when: alerts.deadLetters({ above: 0 }) })
app.source('shop', bearer({ secret: '${TOKEN}' }))
app.source('github', github({ secret: 'github-secret-0123456789' }))
app.flow('does', { on: 'shop/order', key: keyOf, run: () => {} })
app.flow('waits', { on: 'shop/late', key: keyOf, window: { quiet: '1h' }, run: () => {} })
app.flow('fails', { on: 'shop/bad', key: keyOf, retry: [], run: () => {
  if (!existsSync('fixed')) throw new Error('no luck today')
} })
export default app
`

export function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-commands-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** The output, parsed as JSON. */
  readonly json: never
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** The file that receives standard output. */
  readonly answer?: string
}

function environment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { PORT: _port, SLUICE_URL: _url, SLUICE_KEY: _key, FORCE_COLOR: _colour, ...others } = process.env
  const { SLUICE_ENCRYPTION_KEY: _encryptionKey, ...rest } = others
  return { ...rest, NODE_NO_WARNINGS: '1', NODE_COMPILE_CACHE: COMPILED, ...more }
}

/** Runs a command to its end. */
export async function run(folder: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { env, input = '', answer } = options
  const stdout = answer === undefined ? 'pipe' : openSync(answer, 'w')
  const how = { cwd: folder, env: environment({ ...NOBODY, ...env }), stdio: ['pipe', stdout, 'pipe'] as StdioOptions }
  const child = spawn(process.execPath, [MAIN, ...args], how)
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => void (texts[name] += text))
  }
  child.stdin?.on('error', () => {}).end(input)
  const [code] = (await once(child, 'close')) as [number]
  if (typeof stdout === 'number') closeSync(stdout)
  return {
    code,
    ...texts,
    get json(): never {
      return JSON.parse(texts.stdout) as never
    },
  }
}

/** A running command and its output so far. */
export class Program {
  readonly child: ChildProcess
  readonly exit: Promise<number>
  #text = ''
  #heard = Promise.withResolvers<void>()

  constructor(folder: string, args: readonly string[], env: Readonly<Record<string, string>> = NOBODY) {
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    this.child = spawn(process.execPath, [MAIN, ...args], { cwd: folder, env: environment(env), stdio: [...stdio] })
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#text += text
        this.#heard.resolve()
        this.#heard = Promise.withResolvers()
      })
    }
    this.exit = once(this.child, 'close').then(([code]) => code as number)
    onTestFinished(async () => {
      await this.stop()
    })
  }

  get text(): string {
    return this.#text
  }

  /** Returns the pattern's group once the output matches. */
  async said(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = pattern.exec(this.#text)
      if (found !== null) return found[1] ?? ''
      const isOver = await Promise.race([this.#heard.promise.then(() => false), this.exit.then(() => true)])
      if (isOver && !pattern.test(this.#text)) throw new Error(`It ended without saying ${pattern}: ${this.#text}`)
    }
  }

  stop(): Promise<number> {
    this.child.kill('SIGTERM')
    return this.exit
  }
}

export interface Served {
  readonly url: string
  readonly program: Program
  /** Runs a command against this server. */
  sluice(...args: readonly string[]): Promise<Ran>
  /** Publishes an event from the source shop, and returns its id. */
  publish(type: string, user: string): Promise<string>
}

export async function serve(folder: string, port = 0): Promise<Served> {
  const program = new Program(folder, ['start', `--port=${port}`], {})
  const url = await program.said(/listens on (http:\S+)/)
  return {
    url,
    program,
    sluice: (...args) => run(folder, args, { env: { SLUICE_URL: url } }),
    publish: async (type, user) => {
      const response = await fetch(`${url}/in/shop`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` },
        body: JSON.stringify({ type, user }),
      })
      const { events } = (await response.json()) as { readonly events: readonly { readonly id: string }[] }
      return events[0]?.id ?? ''
    },
  }
}

/** Polls until the value is right, where no output announces it. */
export async function until<T>(ask: () => Promise<T>, isSo: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (isSo(answer)) return answer
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
