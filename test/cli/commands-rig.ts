// Shared by the tests of commands: runs the real command, on a real SQLite file and a real server. `run` and `serve` do so in
// processes that are ready (command-host.ts); `runAlone` and `Program` start a process for the command, as a user does.
import { fork, spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { HostMessage, HostedCommand } from './command-host.ts'

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
  if (!existsSync(new URL('fixed', import.meta.url))) throw new Error('no luck today')
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

function environment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PORT: _port, SLUICE_URL: _url, SLUICE_KEY: _key, FORCE_COLOR: _colour, ...others } = process.env
  const { SLUICE_ENCRYPTION_KEY: _encryptionKey, ...rest } = others
  return { ...rest, NODE_NO_WARNINGS: '1', NODE_COMPILE_CACHE: COMPILED, ...more }
}

/** A process that runs one command after the other. Commands share the folder and the environment of the process. */
class Host {
  readonly #listeners = new Map<number, (message: HostMessage) => void>()
  #child: ChildProcess | undefined
  #last: Promise<unknown> = Promise.resolve()
  #made = 0

  /** Starts a command once the ones before it do not need the folder any more. `start` resolves when this one does not. */
  inTurn<T>(start: () => Promise<T>): Promise<T> {
    const started = this.#last.then(start)
    this.#last = started.catch(() => {})
    return started
  }

  /** Returns the id of the command. `hear` gets its output and its exit code. */
  start(command: Omit<HostedCommand, 'id'>, hear: (message: HostMessage) => void): number {
    const id = this.#made++
    this.#listeners.set(id, hear)
    this.#send({ id, ...command })
    return id
  }

  signal(id: number, signal: string): void {
    this.#send({ id, signal })
  }

  #send(message: HostedCommand | { readonly id: number; readonly signal: string }): void {
    this.#child ??= this.#fork()
    this.#child.send(message)
  }

  /** The process ends with this one, and keeps nothing alive. */
  #fork(): ChildProcess {
    const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const
    const child = fork(HOST, { env: environment(), execArgv: [], stdio: [...stdio] })
    child.on('message', (message: HostMessage) => this.#listeners.get(message.id)?.(message))
    child.once('exit', (code) => {
      this.#child = undefined
      const text = `The process of the commands ended with ${code}.\n`
      for (const [id, hear] of this.#listeners) {
        hear({ id, stream: 'stderr', text })
        hear({ id, code: code ?? 70 })
      }
      this.#listeners.clear()
    })
    child.unref()
    child.channel?.unref()
    return child
  }
}

const HOST = fileURLToPath(new URL('command-host.ts', import.meta.url))
const [commands, servers] = [new Host(), new Host()]

/** Runs a command to its end. A command that reads standard input, or writes into a file, has a process of its own. */
export function run(folder: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  if (options.input !== undefined || options.answer !== undefined) return runAlone(folder, args, options)
  return commands.inTurn(async () => {
    const texts = { stdout: '', stderr: '' }
    const { promise, resolve } = Promise.withResolvers<number>()
    const command = { folder, args, env: environment({ ...NOBODY, ...options.env }) }
    commands.start(command, (message) => {
      if ('code' in message) resolve(message.code)
      else texts[message.stream] += message.text
    })
    return toRan(await promise, texts)
  })
}

/** Runs a command to its end in a process of its own. */
export async function runAlone(folder: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
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
  return toRan(code, texts)
}

function toRan(code: number, texts: { readonly stdout: string; readonly stderr: string }): Ran {
  return {
    code,
    ...texts,
    get json(): never {
      return JSON.parse(texts.stdout) as never
    },
  }
}

/** The output of a running command so far. */
abstract class Running {
  abstract readonly exit: Promise<number>
  #text = ''
  #heard = Promise.withResolvers<void>()

  abstract stop(): Promise<number>

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

  protected hear(text: string): void {
    this.#text += text
    this.#heard.resolve()
    this.#heard = Promise.withResolvers()
  }
}

/** A running command in a process of its own. */
export class Program extends Running {
  readonly child: ChildProcess
  readonly exit: Promise<number>

  constructor(folder: string, args: readonly string[], env: Readonly<Record<string, string>> = NOBODY) {
    super()
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    this.child = spawn(process.execPath, [MAIN, ...args], { cwd: folder, env: environment(env), stdio: [...stdio] })
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => this.hear(text))
    }
    this.exit = once(this.child, 'close').then(([code]) => code as number)
    onTestFinished(async () => {
      await this.stop()
    })
  }

  stop(): Promise<number> {
    this.child.kill('SIGTERM')
    return this.exit
  }
}

/** A running command in a process that it shares with others. */
class Hosted extends Running {
  readonly exit: Promise<number>
  readonly #id: number

  constructor(folder: string, args: readonly string[]) {
    super()
    const { promise, resolve } = Promise.withResolvers<number>()
    this.exit = promise
    this.#id = servers.start({ folder, args, env: environment() }, (message) => {
      if ('code' in message) resolve(message.code)
      else this.hear(message.text)
    })
    onTestFinished(async () => {
      await this.stop()
    })
  }

  stop(): Promise<number> {
    servers.signal(this.#id, 'SIGTERM')
    return this.exit
  }
}

export interface Served {
  readonly url: string
  readonly program: Running
  /** Runs a command against this server. */
  sluice(...args: readonly string[]): Promise<Ran>
  /** Publishes an event from the source shop, and returns its id. */
  publish(type: string, user: string): Promise<string>
}

const LISTENS = /listens on (http:\S+)/

/** Runs `sluice start`. */
export function serve(folder: string, port = 0): Promise<Served> {
  return servers.inTurn(async () => {
    const program = new Hosted(folder, ['start', `--port=${port}`])
    return toServed(folder, program, await program.said(LISTENS))
  })
}

function toServed(folder: string, program: Running, url: string): Served {
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
