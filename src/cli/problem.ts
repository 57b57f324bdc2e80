// What went wrong, told in one way: a line for people, the problem as JSON for programs, and how the program ends by it.
import { SluiceError, type ErrorCode } from '../errors.ts'
import type { Answer, Problem } from './caller.ts'
import { EXIT, type Exit } from './exit.ts'
import { plainLines, type Output } from './output.ts'

type OwnCode = 'UNREACHED' | 'USAGE_WRONG' | 'YES_NEEDED' | 'NOT_CONFIRMED' | 'FILE_FAILED'

/** Beside the codes of the API and of the package, those of the command line itself. docs/cli.md lists them. */
const OWN: Readonly<Record<OwnCode, { readonly status: number; readonly exit: Exit }>> = {
  UNREACHED: { status: 503, exit: EXIT.unreached },
  USAGE_WRONG: { status: 400, exit: EXIT.usage },
  YES_NEEDED: { status: 400, exit: EXIT.usage },
  NOT_CONFIRMED: { status: 409, exit: EXIT.failed },
  FILE_FAILED: { status: 500, exit: EXIT.failed },
}

export const OWN_CODES: readonly string[] = Object.keys(OWN)

const START_IT = 'Start the server with sluice start, or say where it is with --url.'

/** Of an answer that is none. */
export function ended(out: Output, answer: Exclude<Answer, { readonly kind: 'done' }>): Exit {
  if (answer.kind === 'unreached') return refuse(out, 'UNREACHED', answer.why, answer.fix ?? START_IT)
  const { problem } = answer
  return told(out, problem, `${problem.code}: ${sentence(problem)}`, exitOf(problem.code, problem.status))
}

/** What the command line itself finds wrong: people need no code for it. */
export function refuse(out: Output, code: OwnCode, detail: string, fix = ''): Exit {
  const { status, exit } = OWN[code]
  const problem = { status, code, detail, fix }
  return told(out, problem, sentence(problem), exit)
}

/** What nobody foresaw is thrown on. */
export function failed(out: Output, error: unknown): Exit {
  if (error instanceof SluiceError) {
    const { code, status, fix, message } = error
    const detail = message.slice(code.length + 2, message.length - fix.length).trim()
    return told(out, { status, code, detail, fix }, message, exitOf(code, status))
  }
  // Of the system, such as a file that cannot be written.
  if (error instanceof Error && 'code' in error) return refuse(out, 'FILE_FAILED', error.message)
  throw error
}

function told(out: Output, problem: Problem, text: string, exit: Exit): Exit {
  if (out.asJson) out.answer(problem)
  out.note(plainLines(text))
  if (problem.code === 'STORE_IN_USE') out.note('If it is a server on another port, say where with --url.')
  return exit
}

function sentence({ detail, fix }: Problem): string {
  return fix === '' ? detail : `${detail} ${fix}`
}

const UNREACHED: ReadonlySet<string> = new Set<ErrorCode>(['STORE_IN_USE', 'CONFIG_MISSING'])

function exitOf(code: string, status: number): Exit {
  if (UNREACHED.has(code)) return EXIT.unreached
  if (status === 404 || code === 'STORE_MISSING') return EXIT.missing
  if (status === 401 || status === 403) return EXIT.refused
  return status === 400 ? EXIT.usage : EXIT.failed
}
