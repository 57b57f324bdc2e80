// The example app Opik alerts in real time, on SQLite and on PostgreSQL: no event is lost or sent twice, and windows end in time.
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { loadOn, type LoadResult } from '../examples/opik-alerts/load.ts'

export const title =
  'Opik alerts with 100,000 events over 500 alerts: each event is in exactly one notification, and there are exactly as many ' +
  'notifications as windows of an alert and type by our own count; of 500 windows that end in the same second, 99 % are sent within 100 ms'

const LOAD = { workspaces: 50, rounds: 5, eventsPerBurst: 40 } as const
const P99 = 100

export async function run(context: ProofContext): Promise<Figure> {
  const values: Record<string, LoadResult> = {}
  for (const name of ['sqlite', 'postgres']) {
    const progress = (text: string): void => context.progress(`${name}: ${text}`)
    values[name] = await loadOn(name, { ...LOAD, seed: context.seed, progress })
  }
  return { holds: Object.values(values).every(holds), values }
}

function holds({
  events,
  missing,
  repeated,
  doubtful,
  notifications,
  windows,
  deadLetters,
  late,
}: LoadResult): boolean {
  const isWhole = events === 100_000 && missing + repeated + doubtful + deadLetters === 0 && notifications === windows
  return isWhole && late.windows === 500 && late.p99 <= P99
}
