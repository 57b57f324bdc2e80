// Finds the command that is meant, reads what it is given, runs it, and says how it ended. Never throws what is expected.
import { systemClock } from '../clock.ts'
import { SluiceError } from '../errors.ts'
import { exitOf, findCaller } from './api-call.ts'
import { COMMON, Given } from './arguments.ts'
import type { Caller } from './caller.ts'
import type { Command, Scene } from './command.ts'
import { COMMANDS } from './commands/index.ts'
import { EXIT, type Exit } from './exit.ts'
import { Output } from './output.ts'
import { overview, usageOf } from './usage.ts'

/** Whether the first word is one of these, so that nobody else has to understand the others. */
export function isCommand(word: string): boolean {
  return COMMANDS.some(({ words }) => words === word || words.startsWith(`${word} `))
}

/** For the usage of the whole. */
export function allCommands(): string {
  return overview(COMMANDS)
}

export async function runCommand(args: readonly string[]): Promise<Exit> {
  const [first = '', second = ''] = args
  const group = COMMANDS.filter(({ words }) => words.startsWith(`${first} `))
  const command = find(first, second)
  if (command === undefined) return say(overview(group), args.includes('--help') ? EXIT.done : EXIT.usage)
  const rest = args.slice(args[1] !== undefined && command.words === `${first} ${second}` ? 2 : 1)
  const given = read(command, rest)
  if (typeof given === 'string') return say(`${given}\n\n${usageOf(command)}`, EXIT.usage)
  if (given.is('help')) return say(usageOf(command), EXIT.done)
  return run(command, given)
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
  process.stdout.on('error', whenNobodyReads)
  try {
    return await command.run(scene)
  } catch (error) {
    return failed(error)
  } finally {
    await (await caller?.catch(() => undefined))?.close()
  }
}

function failed(error: unknown): Exit {
  if (error instanceof SluiceError) return say(error.message, exitOf(error.code, error.status))
  // Of the system, such as a file that cannot be written.
  if (error instanceof Error && 'code' in error) return say(error.message, EXIT.failed)
  throw error
}

/** `sluice dead list | head`: what nobody reads is no failure. */
function whenNobodyReads(error: Error): void {
  if ('code' in error && error.code === 'EPIPE') process.exit(EXIT.done)
  throw error
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

function say(text: string, exit: Exit): Exit {
  const stream = exit === EXIT.done ? process.stdout : process.stderr
  stream.write(`${text}\n`)
  return exit
}
