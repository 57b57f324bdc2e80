// Reports an error in one way: a line for people, the problem as JSON for programs, and the exit code.
import { SluiceError, type ErrorCode } from '../errors.ts'
import type { ApiProblem, FailedResult } from './api-client.ts'
import { EXIT, type ExitCode } from './exit.ts'
import { escapeLines, type Output } from './output.ts'

type CliErrorCode = 'UNREACHED' | 'USAGE_WRONG' | 'YES_NEEDED' | 'NOT_CONFIRMED' | 'FILE_FAILED'

/** The command line's own codes, beside those of the API and of the package. docs/cli.md lists them. */
const CLI_ERRORS: Readonly<Record<CliErrorCode, { readonly status: number; readonly exit: ExitCode }>> = {
  UNREACHED: { status: 503, exit: EXIT.unreached },
  USAGE_WRONG: { status: 400, exit: EXIT.usage },
  YES_NEEDED: { status: 400, exit: EXIT.usage },
  NOT_CONFIRMED: { status: 409, exit: EXIT.failed },
  FILE_FAILED: { status: 500, exit: EXIT.failed },
}

export const CLI_ERROR_CODES: readonly string[] = Object.keys(CLI_ERRORS)

const START_IT = 'Start the server with sluice start (sluice dev during development), or pass its address with --url.'

export function reportFailure(out: Output, answer: FailedResult): ExitCode {
  if (answer.kind === 'unreached') return reportCliError(out, 'UNREACHED', answer.why, answer.fix ?? START_IT)
  const { problem } = answer
  return reportProblem(
    out,
    problem,
    `${problem.code}: ${formatProblem(problem)}`,
    toExitCode(problem.code, problem.status),
  )
}

/** `reportCliError` reports an error of the command line itself. People get no code for it. */
export function reportCliError(out: Output, code: CliErrorCode, detail: string, fix = ''): ExitCode {
  const { status, exit } = CLI_ERRORS[code]
  const problem = { status, code, detail, fix }
  return reportProblem(out, problem, formatProblem(problem), exit)
}

/** `reportError` reports expected errors and rethrows all others. */
export function reportError(out: Output, error: unknown): ExitCode {
  if (error instanceof SluiceError) {
    const { code, status, fix, message } = error
    const detail = message.slice(code.length + 2, message.length - fix.length).trim()
    return reportProblem(out, { status, code, detail, fix }, message, toExitCode(code, status))
  }
  // A system error, such as a file that cannot be written.
  if (error instanceof Error && 'code' in error) return reportCliError(out, 'FILE_FAILED', error.message)
  throw error
}

function reportProblem(out: Output, problem: ApiProblem, text: string, exit: ExitCode): ExitCode {
  if (out.asJson) out.printJson(problem)
  out.note(escapeLines(text))
  if (problem.code === 'STORE_IN_USE')
    out.note('If a server on another port uses the store, pass its address with --url.')
  return exit
}

function formatProblem({ detail, fix }: ApiProblem): string {
  return fix === '' ? detail : `${detail} ${fix}`
}

const UNREACHED_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'STORE_IN_USE',
  'STORE_REFUSED',
  'STORE_UNREACHABLE',
  'CONFIG_MISSING',
])

function toExitCode(code: string, status: number): ExitCode {
  if (UNREACHED_CODES.has(code)) return EXIT.unreached
  if (status === 404 || code === 'STORE_MISSING') return EXIT.missing
  if (status === 401 || status === 403) return EXIT.refused
  return status === 400 ? EXIT.usage : EXIT.failed
}
