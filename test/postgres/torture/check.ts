// Compares the ledger of a torture test with the tables.
import type { Tortured } from './cluster.ts'
import { checkEnds } from './check-ends.ts'
import { checkLeases } from './check-leases.ts'
import { checkGone, checkTables } from './check-tables.ts'

export function complaintsOf({ ledger, tables, remains, listed }: Tortured): readonly string[] {
  return [
    ...ledger.wrong,
    ...checkLeases(ledger),
    ...checkGone(ledger),
    ...checkEnds(ledger, tables, listed),
    ...checkTables(ledger, tables, remains),
  ]
}
