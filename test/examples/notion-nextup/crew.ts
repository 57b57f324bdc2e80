// Starts the processes of the stress test, kills them in the middle of their work, and starts them again.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Turn } from '../../../examples/notion-nextup/scenarios/judge.ts'
import type { Line, Said, WorkerNumbers } from './worker.ts'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))

interface Member {
  /** A process that replaces a killed one has its number. */
  readonly slot: number
  readonly child: ChildProcess
  readonly diary: string
  url: string
  isBusy: boolean
  /** The time of its end on the clock that all processes share; Infinity while it lives. */
  died: number
}

/** `due` is by the store's clock, all other times by the clock that the processes share. */
export interface CrewTurn extends Turn {
  readonly late: number
  readonly process: number
  /** The process was killed in the middle of the run. */
  readonly cutOff: boolean
}

export interface CrewOptions {
  readonly store: string
  readonly notion: string
  readonly folder: string
  readonly numbers: WorkerNumbers
}

export class Crew {
  /** The number of the killed process, for each kill. */
  readonly killed: number[] = []
  readonly #options: CrewOptions
  /** All runs, including those that were cut off by a kill. */
  readonly #all: Member[] = []

  constructor(options: CrewOptions) {
    this.#options = options
  }

  /** The addresses of the live processes, to which webhooks can be sent. */
  get addresses(): readonly string[] {
    return this.#living.map(({ url }) => url).filter((url) => url !== '')
  }

  async start(slot: number): Promise<void> {
    const { store, notion, folder, numbers } = this.#options
    const diary = join(folder, `diary-${this.#all.length}.jsonl`)
    const child = fork(WORKER, [store, notion, diary, JSON.stringify(numbers)], { execArgv: [] })
    const member: Member = { slot, child, diary, url: '', isBusy: false, died: Infinity }
    this.#all.push(member)
    child.once('exit', () => void (member.died = now()))
    const ready = Promise.withResolvers<void>()
    child.once('exit', (code) => ready.reject(new Error(`A worker ended with ${code} before it listened.`)))
    child.on('message', (said: Said) => {
      if ('busy' in said) member.isBusy = said.busy
      else {
        member.url = said.url
        ready.resolve()
      }
    })
    await ready.promise
  }

  /** Kills a process that is in the middle of a run, as soon as there is one, and returns its number. */
  async killBusy(): Promise<number> {
    for (;;) {
      const busy = this.#living.find(({ isBusy }) => isBusy)
      if (busy === undefined) await Promise.race(this.#living.map(({ child }) => once(child, 'message')))
      else if (await this.#killed(busy)) return busy.slot
    }
  }

  /** The last line may be out of date, so the process is stopped first, and continues if its run has just ended. */
  async #killed({ child, diary, slot }: Member): Promise<boolean> {
    child.kill('SIGSTOP')
    const last = linesOf(diary).findLast(({ what }) => what !== 'called')
    if (last?.what !== 'claimed') {
      child.kill('SIGCONT')
      await once(child, 'message')
      return false
    }
    await this.#end(slot, child)
    return true
  }

  /** Kills a process, busy or idle. */
  async kill(slot: number): Promise<void> {
    for (const member of this.#living) if (member.slot === slot) await this.#end(slot, member.child)
  }

  async #end(slot: number, child: ChildProcess): Promise<void> {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
    this.killed.push(slot)
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#living.map(async ({ child }) => {
        const gone = once(child, 'exit')
        child.send('stop')
        await gone
      }),
    )
  }

  killAll(): void {
    for (const { child } of this.#living) child.kill('SIGKILL')
  }

  /** The runs by the logs, in the order in which they started. A run that was cut off ended with its process. */
  turns(): readonly CrewTurn[] {
    return this.#all
      .flatMap(({ diary, died, slot: process }) => {
        const lines = linesOf(diary)
        return lines.flatMap((line, at) => {
          if (line.what !== 'claimed') return []
          const end = lines.slice(at + 1).find((other) => other.what === 'ended' && other.run === line.run)
          const ended = end?.what === 'ended' ? line.at + end.ms : died
          const { user, due, late, at: began } = line
          return [{ user, due, late, began, ended, process, cutOff: end === undefined }]
        })
      })
      .toSorted((one, other) => one.began - other.began)
  }

  /** When any of the processes handed its calls over. */
  handed(): readonly number[] {
    return this.#calls.map(({ at }) => at)
  }

  /** How late a process was at most while it may have had a call in progress. */
  lag(): number {
    return Math.max(...this.#calls.map(({ lag }) => lag))
  }

  turnsByProcess(): readonly number[] {
    const turns = this.turns()
    const slots = new Set(this.#all.map(({ slot }) => slot))
    return [...slots].map((slot) => turns.filter(({ process }) => process === slot).length)
  }

  get #calls(): readonly Extract<Line, { what: 'called' }>[] {
    return this.#all.flatMap(({ diary }) => linesOf(diary)).filter((line) => line.what === 'called')
  }

  get #living(): readonly Member[] {
    return this.#all.filter(({ died }) => died === Infinity)
  }
}

/** A killed process may have written half a line. */
function linesOf(diary: string): readonly Line[] {
  const whole = readFileSync(diary, 'utf8').split('\n').slice(0, -1)
  return whole.map((line) => JSON.parse(line) as Line)
}

function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
