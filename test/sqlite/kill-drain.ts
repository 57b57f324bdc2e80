// Runs what killed processes left behind.
import { systemClock } from '../../src/clock.ts'
import { createClaimRequest, done } from '../conformance/builders.ts'
import { openStore } from '../../src/store/open.ts'
import type { Ledger } from './kill-ledger.ts'
import { FLOW, LEASE, type Ended } from './kill-load.ts'

/** More calls than a thousand lives can make necessary. */
const MOST_TURNS = 5_000

/** `drain` runs everything that is left, with a clock that jumps ahead, so that it never waits for windows and leases. */
export async function drain(file: string, ledger: Ledger): Promise<void> {
  let now = Date.now()
  const store = await openStore(`sqlite:${file}`, { clock: { ...systemClock, now: () => now } })
  const claim = [createClaimRequest({ flow: FLOW, lease: 60_000 })]
  const end = { outcome: done, whileRunning: 'window', keep: 0, attempt: undefined, publish: [] } as const
  let ends: readonly (Ended & { readonly token: number })[] = []
  for (let request = 1; ; request++) {
    // A lane that never becomes empty is a violation, not a reason to wait forever.
    if (request > MOST_TURNS) {
      ledger.complaints.add('wrong', `after ${MOST_TURNS} turns there is still something to do`)
      break
    }
    ledger.hear({ kind: 'settling', n: -request, ends })
    const settle = ends.map(({ lane, token }) => ({ ...end, lane, token }))
    const call = { process: 'drain', request, routes: 1, settle, claim, budget: 0 }
    const { settled, claimed, crashed, nextDeadlines: heads } = await store.settleAndClaim(call)
    ledger.hear({ kind: 'settled', n: -request, answers: settled })
    ends = claimed.map(({ runId: run, lane, token, tries, lapses, events: batch }) => {
      const events = batch.map((event) => event.id)
      ledger.hear({ kind: 'claimed', runs: [{ run, lane, token, tries, lapses, events }], crashed: [] })
      return { run, lane, token, kind: 'done', events, retry: [], dead: [], publish: [] }
    })
    ledger.hear({ kind: 'claimed', runs: [], crashed: crashed.map(({ run }) => run) })
    if (claimed.length === 0 && crashed.length === 0) {
      if (heads[0]?.due === undefined) break
      now += LEASE
    }
  }
  await store.close()
}
