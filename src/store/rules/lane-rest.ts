// How rows keep a lane: most lanes only wait, and have nothing of what stands here.
import { NEVER, type Millis } from '../../clock.ts'
import type { Lane } from '../../model/lane.ts'

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

/** Most lanes only wait: they have nothing of this. */
export function restOf(lane: Lane): string | null {
  const { left, replays, replayDue, passed, letters, letterDue, blocks, hold, ended, keepUntil, run } = lane
  const plain = run === undefined && !left && replays === 0 && letters === 0 && blocks === 0 && hold === undefined
  if (plain && keepUntil === 0) return null
  const rest: Rest = { left, replays, replayDue, passed, letters, letterDue, blocks, hold, ended, keepUntil, run }
  return JSON.stringify(rest)
}

export function readRest(rest: string): Rest {
  return JSON.parse(rest) as Rest
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
