// `Crew` starts the workers of the fleet, sends them requests, kills them, and replaces each with a standby.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Chance } from '../../examples/kit/chance.ts'
import { workerName, type FleetStore } from './fleet-app.ts'
import type { FromWorker, ToWorker } from './fleet-worker.ts'

const WORKER = fileURLToPath(new URL('./fleet-worker.ts', import.meta.url))
const LOOK_EVERY = 100

/** Holds the running workers and one loaded standby. */
export class Crew {
  readonly #store: FleetStore
  readonly #size: number
  readonly #compiled: string
  #lives: Life[] = []
  #next: Life
  #adding: Promise<void> = Promise.resolve()

  constructor(store: FleetStore, size: number, compiled: string) {
    this.#store = store
    this.#size = size
    this.#compiled = compiled
    this.#next = this.#load()
  }

  async begin(): Promise<void> {
    while (this.#lives.length < this.#size) await this.#add()
  }

  /** Asks any worker. If that worker is killed meanwhile, another one is asked. */
  async publish(from: number, to: number): Promise<void> {
    await this.ask({ kind: 'publish', from, to }, 'published')
  }

  async ask<K extends FromWorker['kind']>(told: ToWorker, answer: K): Promise<Extract<FromWorker, { kind: K }>> {
    for (;;) {
      const life = this.#lives[0]
      if (life === undefined) {
        // The only worker was killed just now.
        await this.#adding
        continue
      }
      this.#lives = [...this.#lives.slice(1), life]
      const heard = await life.ask(told, answer)
      if (heard !== undefined) return heard
    }
  }

  /** Returns the name of the killed worker. */
  async killOne(by: Chance): Promise<string> {
    const at = by.between(0, this.#lives.length - 1)
    const [life] = this.#lives.splice(at, 1)
    this.#adding = (async () => {
      await life?.kill()
      await this.#add()
    })()
    await this.#adding
    return life?.name ?? ''
  }

  async idle(): Promise<void> {
    while ((await this.ask({ kind: 'look' }, 'looked')).left > 0) await setTimeout(LOOK_EVERY)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#lives.map((life) => life.stop()))
  }

  kill(): void {
    for (const life of [...this.#lives, this.#next]) void life.kill()
  }

  #load(): Life {
    return new Life(this.#store, this.#compiled)
  }

  async #add(): Promise<void> {
    const life = this.#next
    this.#next = this.#load()
    await life.begin()
    this.#lives.push(life)
  }
}

class Life {
  readonly #child: ChildProcess
  readonly #exit: Promise<unknown>
  readonly #loaded: Promise<unknown>

  constructor(store: FleetStore, compiled: string) {
    const env = { ...process.env, NODE_COMPILE_CACHE: compiled }
    this.#child = fork(WORKER, [JSON.stringify(store)], { env, execArgv: [] })
    this.#exit = once(this.#child, 'exit')
    this.#loaded = once(this.#child, 'message')
    // `ask` reports these rejections to its caller.
    for (const one of [this.#exit, this.#loaded]) one.catch(() => {})
  }

  get name(): string {
    return workerName(this.#child.pid)
  }

  async begin(): Promise<void> {
    await Promise.race([this.#loaded, this.#exit])
    if ((await this.ask({ kind: 'begin' }, 'begun')) === undefined) throw new Error('A worker ended before it began.')
  }

  /** Resolves to undefined if the worker died meanwhile. */
  async ask<K extends FromWorker['kind']>(
    told: ToWorker,
    answer: K,
  ): Promise<Extract<FromWorker, { kind: K }> | undefined> {
    const heard = new Promise<Extract<FromWorker, { kind: K }>>((resolve) => {
      const hear = (message: FromWorker): void => {
        if (message.kind !== answer) return
        this.#child.off('message', hear)
        resolve(message as Extract<FromWorker, { kind: K }>)
      }
      this.#child.on('message', hear)
    })
    this.#child.send(told)
    return Promise.race([heard, this.#exit.then(() => undefined)])
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exit
  }

  async stop(): Promise<void> {
    this.#child.send({ kind: 'stop' } satisfies ToWorker)
    await this.#exit
  }
}
