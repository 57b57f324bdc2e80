// Every supported release of PostgreSQL, not only the first and the last, on which the tests run.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Figure, ProofContext } from '../../scripts/proof.ts'
import { programsOf, VERSIONS, type Version } from '../postgres/programs.ts'
import { runSuite, type SuiteResult } from '../postgres/suite-run.ts'

export const title: string =
  'PostgreSQL 15, 16, 17 and 18 pass the same conformance suite, none of it skipped; on 16 and 17, which the tests do not run ' +
  'on, 500 random histories keep every rule besides'

const SUITES = {
  conformance: 'test/stores/postgres.test.ts',
  simulation: 'test/simulation/postgres.test.ts',
} as const
const SIMULATED: readonly Version[] = [16, 17]
const HISTORIES = 500

interface OfVersion {
  /** Undefined if this release could not be fetched or run; `complaint` has the reason. */
  readonly server: string | undefined
  readonly complaint?: string
  readonly conformance?: SuiteResult
  readonly simulation?: SuiteResult
}

type Found = Readonly<Record<string, OfVersion>>

export async function run(context: ProofContext): Promise<Figure> {
  let found: Found = context.resume<Found>() ?? {}
  for (const version of VERSIONS.filter((one) => !(one in found))) {
    context.progress(`PostgreSQL ${version}`)
    found = { ...found, [version]: await ofVersion(version, context.seed) }
    context.progress(JSON.stringify(found[version]))
    context.checkpoint(found)
  }
  const all = Object.values(found)
  const tests = new Set(all.map(({ conformance }) => conformance?.passed))
  const suites = all.flatMap(({ conformance, simulation }) =>
    [conformance, simulation].filter((one) => one !== undefined),
  )
  const holds =
    tests.size === 1 &&
    suites.length === VERSIONS.length + SIMULATED.length &&
    suites.every(
      ({ passed, failed, untried, elsewhere, complaints }) =>
        passed > 0 && failed + untried + elsewhere + complaints.length === 0,
    )
  return { holds, values: { histories: HISTORIES, ...found } }
}

async function ofVersion(version: Version, seed: number): Promise<OfVersion> {
  let server: string
  try {
    const postgres = join(await programsOf(version), 'bin', 'postgres')
    server = (await promisify(execFile)(postgres, ['--version'])).stdout.trim()
  } catch (error) {
    return { server: undefined, complaint: error instanceof Error ? error.message : String(error) }
  }
  const settings = { HISTORIES: String(HISTORIES), SEED: String(seed) }
  const conformance = await runSuite({ file: SUITES.conformance, version })
  if (!SIMULATED.includes(version)) return { server, conformance }
  return { server, conformance, simulation: await runSuite({ file: SUITES.simulation, version, settings }) }
}
