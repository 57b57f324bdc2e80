// A command of the command line as data: the usage, the completion, the docs and the program read the same declaration.
import type { Clock } from '../clock.ts'
import type { Where } from './api-call.ts'
import type { Given, Option, Options } from './arguments.ts'
import type { Answer, Call, Caller } from './caller.ts'
import { EXIT, type Exit } from './exit.ts'
import { plain, type Output } from './output.ts'
import { ended, refuse } from './problem.ts'

export interface Command {
  /** `'dead retry'` */
  readonly words: string
  /** By place: `'<id>'`, or `'[id]'` where it can be left out. */
  readonly takes?: readonly string[]
  readonly says: string
  readonly options?: Options
  /** Runs the app itself, until it is told to stop. */
  readonly isLasting?: boolean
  readonly run: (scene: Scene) => Promise<Exit>
}

export interface Scene {
  readonly given: Given
  readonly out: Output
  readonly where: Where
  readonly clock: Clock
  /** Aborted when it is to stop. */
  readonly signal: AbortSignal
  /** Whoever answers the API: looked for once, and only if somebody asks. */
  readonly api: () => Promise<Caller>
}

export const YES: Option = { type: 'boolean', says: 'do not ask' }

export const PAGE: Options = {
  limit: { type: 'string', value: 'N', says: 'how many at most, 1 to 1000; 100 unless said' },
  cursor: { type: 'string', value: 'NEXT', says: 'go on where the page before ended' },
}

export function texts(says: Readonly<Record<string, string>>): Options {
  return Object.fromEntries(
    Object.entries(says).map(([name, what]) => [name, { type: 'string', value: name.toUpperCase(), says: what }]),
  )
}

/** A long export makes more calls in a minute than one address may: told to come later, it comes later. */
export async function ask({ api, clock }: Scene, call: Call): Promise<Answer> {
  const caller = await api()
  for (let tries = 1; ; tries++) {
    const answer = await caller.call(call)
    const later = answer.kind === 'problem' ? answer.retryAfter : undefined
    if (later === undefined || tries > PATIENCE) return answer
    await new Promise<void>((resolve) => clock.after(later, resolve))
  }
}

const PATIENCE = 20

/** Asks, shows the answer, and says how the program ends. What a route answers is the business of who calls it. */
export async function show(scene: Scene, call: Call, print: (value: never) => void): Promise<Exit> {
  const answer = await ask(scene, call)
  if (answer.kind !== 'done') return ended(scene.out, answer)
  if (scene.out.asJson) scene.out.answer(answer.value)
  else print(answer.value as never)
  return EXIT.done
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly next?: string
}

/** A list: one page of it, and how to get the next. */
export function showPage(scene: Scene, call: Call, print: (items: never) => void): Promise<Exit> {
  return show(scene, call, ({ items, next }: Page<unknown>) => {
    print(items as never)
    if (next !== undefined) scene.out.note(`There are more: --cursor=${plain(next)}`)
  })
}

export function misused({ out }: Scene, what: string): Exit {
  return refuse(out, 'USAGE_WRONG', what)
}
