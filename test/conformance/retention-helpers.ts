// Helpers for the retention rules: finished events, and batches of maintenance.
import type { ConformanceStage } from './stage.ts'
import { MINUTE } from './builders.ts'

export const SHORT_RETENTION: Readonly<Record<'events' | 'runs', Readonly<Record<string, number>>>> = {
  events: { '': MINUTE },
  runs: { '': MINUTE },
}

export async function readBodyText(t: ConformanceStage, name: string): Promise<string | undefined> {
  const [found] = (await t.store.readBodies({ events: [t.id(name)] })).bodies
  return found === undefined ? undefined : Buffer.from(found).toString()
}

let named = 0

/** Events in lanes of their own whose work is done. */
export async function finishEvents(
  t: ConformanceStage,
  n: number,
  words: { readonly dedupeFor: number },
  perRun = 1,
): Promise<void> {
  const names = Array.from({ length: n }, () => `finished ${named++}`)
  await t.appendEvents(...names.map((name, at) => t.event(name, { key: `${names[at - (at % perRun)]}`, ...words })))
  const end = { outcome: { kind: 'done' }, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  const runs = await t.claim({ maxRuns: n })
  await t.settleAndClaim({ settle: runs.map(({ lane, token }) => ({ lane, token, ...end })) })
}

/** The result of maintenance: how many events and runs were removed, and whether more remains. */
export async function maintainOnce(t: ConformanceStage): Promise<readonly [number, number, boolean]> {
  const policy = { ...SHORT_RETENTION, deadLetters: Infinity, bytes: Infinity, lanesPerTenant: {} }
  const { counts: did, more } = await t.store.maintain({ policy, budget: 0 })
  return [did.events, did.runs, more]
}
