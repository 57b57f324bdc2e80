// `Workers` are processes of an app on one PostgreSQL. Each is the example's main.ts, started with --worker.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { systemClock } from 'sluice'
import type { Env, Example } from './example.ts'
import { urlOf } from './stand-in.ts'

export interface WorkersOptions {
  /** The `main` of the example. */
  readonly main: string
  readonly store: string
  readonly env: Env
  /** The addresses of the stand-ins by name. */
  readonly urls: Readonly<Record<string, string>>
}

type Message = { readonly url: string } | { readonly claimed: string } | { readonly ended: string }

interface Worker {
  readonly child: ChildProcess
  url: string
  /** Runs that it is in the middle of. */
  readonly runs: Set<string>
}

const VARIABLE = 'EXAMPLE_WORKER'

export class Workers {
  killed = 0
  /** The runs that killed processes were in the middle of. */
  readonly interrupted = new Set<string>()
  readonly #options: WorkersOptions
  readonly #workers = new Set<Worker>()
  #turn = 0

  constructor(options: WorkersOptions) {
    this.#options = options
  }

  /** How many are alive. */
  get size(): number {
    return this.#workers.size
  }

  /** The address of one of them, in turns. */
  get url(): string {
    const urls = [...this.#workers].map(({ url }) => url)
    return urls[this.#turn++ % urls.length] ?? ''
  }

  /** Starts `n` more. Resolves when they listen. */
  async start(n = 1): Promise<void> {
    await Promise.all(Array.from({ length: n }, () => this.#startOne()))
  }

  /** `kill -9`, of one that is in the middle of a run if there is any. */
  async kill(): Promise<void> {
    const all = [...this.#workers]
    const worker = all.find(({ runs }) => runs.size > 0) ?? all[0]
    if (worker === undefined) return
    // Its last messages arrive before the channel closes.
    const gone = Promise.all([once(worker.child, 'exit'), once(worker.child, 'disconnect')])
    worker.child.kill('SIGKILL')
    await gone
    this.killed++
    for (const run of worker.runs) this.interrupted.add(run)
  }

  /** The same, and another one in its place. */
  async replace(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** `kill`, as soon as one is in the middle of a run. */
  async killBusy(): Promise<void> {
    while (![...this.#workers].some(({ runs }) => runs.size > 0))
      await Promise.race([...this.#workers].map(({ child }) => once(child, 'message')))
    await this.kill()
  }

  /** All of them finish their runs and end. */
  async stop(): Promise<void> {
    await Promise.all(
      [...this.#workers].map(async ({ child }) => {
        const gone = once(child, 'exit')
        child.send('stop')
        await gone
      }),
    )
  }

  async #startOne(): Promise<void> {
    const { main, ...given } = this.#options
    const env = { ...process.env, [VARIABLE]: JSON.stringify(given) }
    const child = fork(fileURLToPath(main), ['--worker'], { env, execArgv: ['--no-warnings'] })
    const worker: Worker = { child, url: '', runs: new Set() }
    const ready = Promise.withResolvers<void>()
    child.on('message', (message: Message) => {
      if ('claimed' in message) worker.runs.add(message.claimed)
      else if ('ended' in message) worker.runs.delete(message.ended)
      else {
        worker.url = message.url
        ready.resolve()
      }
    })
    child.once('exit', (code) => {
      this.#workers.delete(worker)
      ready.reject(new Error(`A worker ended with ${code} before it listened.`))
    })
    await ready.promise
    this.#workers.add(worker)
  }
}

/** `work` is what main.ts runs with --worker. It resolves when the worker must stop, or when its parent has exited. */
export async function work<World>(example: Example<World>): Promise<void> {
  const { store, env, urls } = JSON.parse(process.env[VARIABLE] ?? '') as Omit<WorkersOptions, 'main'>
  const options = { log: { level: 'error' }, ...example.options } as const
  const url = (name: string): string => urlOf(urls, name)
  const app = example.build({ store, env, clock: systemClock, options, url, watch: (client) => client })
  app.onAny((name, what) => {
    if (!name.startsWith('run.') || name === 'run.started' || !('run' in what)) return
    tellParent(name === 'run.claimed' ? { claimed: what.run } : { ended: what.run })
  })
  await app.start()
  tellParent({ url: (await app.listen({ port: 0, host: '127.0.0.1' })).url })
  await Promise.race([once(process, 'message'), once(process, 'disconnect')])
  await app.stop()
  if (process.connected) process.disconnect()
}

function tellParent(message: Message): void {
  process.send?.(message)
}
