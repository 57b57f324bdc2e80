// How a store in a test treats the calls that need no rules. Either way must give the same results, also one after the other.
import type { Store } from '../../src/store/contract/index.ts'
import { openStore } from '../../src/store/open.ts'
import type { DirectPlan } from '../../src/store/postgres/plain-calls.ts'
import { connectStore, createStore } from '../../src/store/postgres/store.ts'

/** `mixed`: the server decides some calls, gives some up after it has begun, and the rules decide the others at once. */
export type DirectCallsMode = 'direct' | 'rules' | 'mixed'

export const DIRECT_CALLS_MODES: readonly DirectCallsMode[] = ['direct', 'rules', 'mixed']

const MIXED: readonly DirectPlan[] = ['do', 'do', 'undo', 'skip']

/** `planOf` draws from a seed, so that a failing test fails again. */
export function planOf(mode: DirectCallsMode, seed = 36): (() => DirectPlan) | undefined {
  if (mode === 'direct') return () => 'do'
  if (mode === 'rules') return () => 'skip'
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return MIXED[state >>> 30] ?? 'do'
  }
}

interface OpenOptions {
  readonly connections: number
  readonly acceptLoss?: boolean
}

/** `openInMode` opens a store on a server. On PostgreSQL, process `n` has the mode whose turn it is. */
export async function openInMode(address: string, options: OpenOptions, n: number): Promise<Store> {
  if (!address.startsWith('postgres')) return openStore(address, options)
  // The address of a socket has no host, so it is no URL.
  const schema = /[?&]schema=([^&]+)/.exec(address)?.[1] ?? 'sluice'
  const postgresOptions = { ...options, url: address, schema }
  const mode = DIRECT_CALLS_MODES[n % DIRECT_CALLS_MODES.length] ?? 'direct'
  return createStore(await connectStore(postgresOptions), postgresOptions, planOf(mode, n + 1))
}
