// How rows keep a lane: most lanes only wait, and have nothing of what stands here.
import { NEVER, type Millis } from '../../clock.ts'
import type { Lane, Run } from '../../model/lane.ts'

type Rest = Pick<
  Lane,
  | 'left'
  | 'replays'
  | 'replayDue'
  | 'passed'
  | 'letters'
  | 'letterDue'
  | 'blocks'
  | 'hold'
  | 'ended'
  | 'keepUntil'
  | 'run'
>

/** What the view `work` reads is always there. */
type SeldomOfRun = Pick<
  Run,
  | 'parent'
  | 'lapses'
  | 'failed'
  | 'first'
  | 'cancel'
  | 'committed'
  | 'purged'
  | 'failingSince'
  | 'againSince'
  | 'state64'
  | 'attempts'
>

/** What is not written means these, in rows of every version: they are of the format, whatever a new run begins with. */
const PLAIN: Omit<Rest, 'hold' | 'run'> = {
  left: false,
  replays: 0,
  replayDue: NEVER,
  passed: 0,
  letters: 0,
  letterDue: NEVER,
  blocks: 0,
  ended: 0,
  keepUntil: 0,
}
const PLAIN_RUN: SeldomOfRun = {
  parent: '',
  lapses: 0,
  failed: false,
  first: true,
  cancel: false,
  committed: false,
  purged: false,
  failingSince: 0,
  againSince: 0,
  state64: '',
  attempts: [],
}

/** Most lanes only wait: they have nothing of this. What is as in most others is left out. */
export function restOf(lane: Lane): string | null {
  const { left, replays, letters, blocks, hold, keepUntil, run } = lane
  const plain = run === undefined && !left && replays === 0 && letters === 0 && blocks === 0 && hold === undefined
  if (plain && keepUntil === 0) return null
  const { replayDue, passed, letterDue, ended } = lane
  const rest = { left, replays, replayDue, passed, letters, letterDue, blocks, ended, keepUntil }
  return JSON.stringify({ ...unlike(rest, PLAIN), hold, run: run && saidOf(run) })
}

/** A run that has just begun has nothing unusual, and is written with every claim: it is not gone through name by name. */
function saidOf(run: Run): Partial<Run> {
  const { id, state, token, until, rank, upto, letter, events, bytes, cap, started, tries } = run
  const isUsual =
    run.first &&
    run.parent === '' &&
    run.lapses === 0 &&
    run.againSince === 0 &&
    run.state64 === '' &&
    run.attempts.length === 0 &&
    !(run.failed || run.cancel || run.committed || run.purged)
  if (isUsual) return { id, state, token, until, rank, upto, letter, events, bytes, cap, started, tries }
  return unlike(run, PLAIN_RUN)
}

export function readRest(written: string): Rest {
  const { run, hold, ...rest } = JSON.parse(written) as Partial<Rest>
  return { ...PLAIN, ...rest, hold, run: run && { ...PLAIN_RUN, ...run } }
}

function unlike<T extends object>(given: T, plain: Partial<T>): Partial<T> {
  const said: Partial<T> = {}
  for (const name of Object.keys(given) as (keyof T)[]) {
    const isPlain = given[name] === plain[name] || (name === 'attempts' && (given[name] as unknown[]).length === 0)
    if (!isPlain) said[name] = given[name]
  }
  return said
}

/** When the live lease ends; NEVER when nothing runs. */
export function leaseEnd({ run }: Lane): Millis {
  return run?.state === 'running' ? run.until : NEVER
}

/** Until when a lane with nothing in it is kept, to remember when it last ran or that it is held; NEVER for all others. */
export function keptUntil({ run, waiting, replays, letters, blocks, keepUntil, hold }: Lane): Millis {
  const isBare = run === undefined && waiting === 0 && replays === 0 && letters === 0 && blocks === 0
  return isBare ? Math.max(keepUntil, hold?.until ?? 0) : NEVER
}
