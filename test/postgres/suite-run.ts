// Runs one test file on one version of PostgreSQL in its own vitest, and returns what the report says.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inFolder } from '../figures/folder.ts'
import type { Version } from './programs.ts'

export interface SuiteRun {
  readonly file: string
  readonly version: Version
  /** The environment variables that the tests read. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface SuiteResult {
  readonly passed: number
  readonly failed: number
  /** Skipped or pending tests. There must be none, so that no test passes without running. */
  readonly untried: number
  /** Tests whose name does not contain this version. */
  readonly elsewhere: number
  readonly seconds: number
  /** The messages of the first failures, or another fault. */
  readonly complaints: readonly string[]
}

interface Report {
  readonly testResults: readonly {
    readonly message: string
    readonly assertionResults: readonly {
      readonly status: string
      readonly fullName: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

const root = join(import.meta.dirname, '../..')
const COMPLAINTS_KEPT = 5
const LONGEST_OUTPUT = 2 ** 26

export function runSuite({ file, version, settings = {} }: SuiteRun): Promise<SuiteResult> {
  return inFolder(async (folder) => {
    const outputFile = join(folder, 'report.json')
    const began = performance.now()
    // A named server or a choice of stores in the environment would override the requested version.
    const { DATABASE_URL: _server, STORES: _stores, ...environment } = process.env
    const args = [
      join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      file,
      '--project=postgres',
      '--reporter=json',
      `--outputFile=${outputFile}`,
    ]
    const child = execFile(process.execPath, args, {
      cwd: root,
      env: { ...environment, ...settings, POSTGRES_VERSIONS: String(version) },
      maxBuffer: LONGEST_OUTPUT,
    })
    const said: string[] = []
    child.stderr?.on('data', (text: string) => void said.push(text))
    const [code] = (await once(child, 'close')) as [number | null]
    const seconds = Math.round((performance.now() - began) / 1_000)
    const report = existsSync(outputFile) ? (JSON.parse(readFileSync(outputFile, 'utf8')) as Report) : NO_REPORT
    const result = resultOf(report, `PostgreSQL ${version}`)
    // A fault outside of any test, such as a server that does not start, is in no report.
    const isUntold = code !== 0 && result.complaints.length === 0
    return { ...result, seconds, complaints: isUntold ? [`exit ${code}: ${said.join('')}`] : result.complaints }
  })
}

const NO_REPORT: Report = { testResults: [] }

function resultOf({ testResults }: Report, server: string): Omit<SuiteResult, 'seconds'> {
  const tests = testResults.flatMap((one) => one.assertionResults)
  const failed = tests.filter(({ status }) => status === 'failed')
  const complaints = [
    ...failed.map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages.join('\n')}`),
    // A file that could not be read, or a hook: no test has failed then.
    ...testResults.map(({ message }) => message).filter((message) => message !== ''),
  ]
  return {
    passed: tests.filter(({ status }) => status === 'passed').length,
    failed: failed.length,
    untried: tests.filter(({ status }) => status !== 'passed' && status !== 'failed').length,
    elsewhere: tests.filter(({ fullName }) => !fullName.includes(server)).length,
    complaints: complaints.slice(0, COMPLAINTS_KEPT),
  }
}
