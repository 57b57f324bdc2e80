// Finds the command that is meant, reads what it is given, runs it, and says how it ended. Never throws what is expected.
import { systemClock } from '../clock.ts'
import { endWhenUnwritten, writeAnswer } from './answer-stream.ts'
import { findCaller } from './api-call.ts'
import { COMMON, Given } from './arguments.ts'
import type { Caller } from './caller.ts'
import type { Command, Scene } from './command.ts'
import { COMMANDS } from './commands/index.ts'
import { EXIT, type Exit } from './exit.ts'
import { Output } from './output.ts'
import { failed, refuse } from './problem.ts'
import { overview, overviewOfAll, usageOf } from './usage.ts'

export interface Ended {
  readonly exit: Exit
  /** It ran the app itself: what that has opened is its own to close. */
  readonly isLasting?: boolean
}

export async function runCommand(args: readonly string[]): Promise<Ended> {
  endWhenUnwritten()
  const at = leading(args)
  const [before, [first = 'help', second = '', ...more]] = [args.slice(0, at), args.slice(at)]
  if (first === 'help') return helped(overviewOfAll(COMMANDS))
  const command = find(first, second)
  if (command === undefined) {
    const group = COMMANDS.filter(({ words }) => words.startsWith(`${first} `))
    const usage = group.length > 0 ? overview(group) : overviewOfAll(COMMANDS)
    if (args.includes('--help')) return helped(usage)
    return notUnderstood(args, `There is no command ${`${first} ${second}`.trimEnd()}.`, usage)
  }
  const isSecond = command.words === `${first} ${second}`
  const rest = [...before, ...(isSecond || args[at + 1] === undefined ? [] : [second]), ...more]
  const given = read(command, rest)
  if (typeof given === 'string') return notUnderstood(args, given, usageOf(command))
  if (given.is('help')) return helped(usageOf(command))
  return { exit: await run(command, given), isLasting: command.isLasting === true }
}

function helped(usage: string): Ended {
  writeAnswer(`${usage}\n`)
  return { exit: EXIT.done }
}

/** Of what could not be read: whether a program reads the answer is plain to see all the same. */
function notUnderstood(args: readonly string[], what: string, usage: string): Ended {
  const { stdout, stderr } = process
  const out = new Output({ stdout, stderr, asJson: args.includes('--json'), isVerbose: false })
  const exit = refuse(out, 'USAGE_WRONG', what)
  out.note(`\n${usage}`)
  return { exit }
}

/** How many of them are options of every command, which may stand before it. */
function leading(args: readonly string[]): number {
  let at = 0
  for (let arg = args[at]; arg?.startsWith('--') === true; arg = args[at]) {
    at += COMMON[arg.slice(2)]?.type === 'string' ? 2 : 1
  }
  return at
}

/** `sluice lanes` is `sluice lanes list`. */
function find(first: string, second: string): Command | undefined {
  const isWord = second !== '' && !second.startsWith('-')
  return (
    named(first) ?? (isWord ? named(`${first} ${second}`) : second === '--help' ? undefined : named(`${first} list`))
  )
}

function named(words: string): Command | undefined {
  return COMMANDS.find((one) => one.words === words)
}

/** A text says what is wrong. */
function read(command: Command, args: readonly string[]): Given | string {
  try {
    const given = new Given(args, { ...COMMON, ...command.options })
    const { takes = [] } = command
    const least = takes.filter((name) => name.startsWith('<')).length
    if (given.is('help') || (given.words.length >= least && given.words.length <= takes.length)) return given
    return given.words.length < least
      ? `${takes[given.words.length]} is missing.`
      : `${given.words[takes.length]} is too much.`
  } catch (error) {
    if (error instanceof TypeError && 'code' in error) return error.message
    throw error
  }
}

async function run(command: Command, given: Given): Promise<Exit> {
  const out = new Output({
    stdout: process.stdout,
    stderr: process.stderr,
    asJson: given.is('json'),
    isVerbose: given.is('verbose'),
  })
  const [url, key, config] = [given.text('url'), given.text('api-key'), given.text('config')]
  const where = { url, key, config, folder: process.cwd(), env: process.env, clock: systemClock }
  let caller: Promise<Caller> | undefined
  const api = async (): Promise<Caller> => {
    const found = await findCaller(where)
    out.tell(`Asks ${found.where}`)
    return found
  }
  const stop = stopping()
  const scene: Scene = {
    given,
    out,
    where,
    clock: systemClock,
    get signal() {
      return stop()
    },
    api: () => (caller ??= api()),
  }
  try {
    return await command.run(scene)
  } catch (error) {
    return failed(out, error)
  } finally {
    await (await caller?.catch(() => undefined))?.close()
  }
}

/** Only who asks for the signal gets to end by itself; anybody else ends at once, as programs do. */
function stopping(): () => AbortSignal {
  let stop: AbortController | undefined
  return () => {
    if (stop !== undefined) return stop.signal
    const made = new AbortController()
    stop = made
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => made.abort())
    return made.signal
  }
}
