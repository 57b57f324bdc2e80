// What rules about retention have in common: events that are done, and pieces of upkeep.
import type { Stage } from './stage.ts'
import { MINUTE } from './vocabulary.ts'

export const ages: Readonly<Record<'events' | 'runs', Readonly<Record<string, number>>>> = {
  events: { '': MINUTE },
  runs: { '': MINUTE },
}

export async function body(t: Stage, name: string): Promise<string | undefined> {
  const [found] = (await t.store.bodies({ events: [t.id(name)] })).bodies
  return found === undefined ? undefined : Buffer.from(found).toString()
}

let named = 0

/** Events in lanes of their own, and done. */
export async function finish(t: Stage, n: number, words: { readonly dedupeFor: number }, perRun = 1): Promise<void> {
  const names = Array.from({ length: n }, () => `finished ${named++}`)
  await t.send(...names.map((name, at) => t.event(name, { key: `${names[at - (at % perRun)]}`, ...words })))
  const end = { outcome: { kind: 'done' }, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  const runs = await t.claim({ slots: n })
  await t.turn({ settle: runs.map(({ lane, token }) => ({ lane, token, ...end })) })
}

/** Of upkeep: how many events and runs went, and whether there is more to look at. */
export async function onePiece(t: Stage): Promise<readonly [number, number, boolean]> {
  const policy = { ...ages, letters: Infinity, bytes: Infinity, lanesPerTenant: {} }
  const { did, more } = await t.store.upkeep({ policy, budget: 0 })
  return [did.events, did.runs, more]
}
