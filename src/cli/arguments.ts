// Parses options and positional arguments by the declaration of the command. Anything else is rejected.
import { parseArgs } from 'node:util'
import { suggestName } from '../validate/closest-name.ts'

export interface Option {
  readonly type: 'string' | 'boolean'
  readonly description: string
  /** The placeholder of the value in the usage: `--flow=FLOW`. */
  readonly placeholder?: string
  /** May be given several times. */
  readonly multiple?: boolean
}

export type Options = Readonly<Record<string, Option>>

/** The options that every command has. */
export const COMMON_OPTIONS: Options = {
  json: { type: 'boolean', description: 'print the API response as JSON' },
  url: {
    type: 'string',
    placeholder: 'URL',
    description: 'URL of the running server; default SLUICE_URL, or the address in the configuration',
  },
  'api-key': {
    type: 'string',
    placeholder: 'KEY',
    description: 'API key; prefer SLUICE_KEY: other users can see command lines',
  },
  config: { type: 'string', placeholder: 'FILE', description: 'configuration file; default ./sluice.config.ts' },
  verbose: { type: 'boolean', description: 'print which server or store is used' },
  help: { type: 'boolean', description: 'print this help' },
}

export class ParsedArguments {
  readonly words: readonly string[]
  readonly #values: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>

  constructor(args: readonly string[], options: Options) {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: toParseOptions(options),
      allowPositionals: true,
    })
    this.words = positionals
    this.#values = values
  }

  has(name: string): boolean {
    return this.#values[name] === true
  }

  text(name: string): string | undefined {
    const value = this.#values[name]
    return typeof value === 'string' ? value : undefined
  }

  all(name: string): readonly string[] {
    const value = this.#values[name]
    return Array.isArray(value) ? value.map(String) : []
  }

  /** `texts` returns the given options among these names, under the names that the API has for them. */
  texts(names: readonly string[]): Readonly<Record<string, string>> {
    return Object.fromEntries(names.flatMap((name) => [[name, this.text(name)] as const]).filter(isPresent))
  }
}

function isPresent(entry: readonly [string, string | undefined]): entry is readonly [string, string] {
  return entry[1] !== undefined
}

function toParseOptions(options: Options): Record<string, { type: 'string' | 'boolean'; multiple: boolean }> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { type, multiple = false }]) => [name, { type, multiple }]),
  )
}

/** `describeParseError` explains an error of the constructor of `ParsedArguments`, and returns undefined for any other error. */
export function describeParseError(error: unknown, options: Options): string | undefined {
  if (!(error instanceof TypeError && 'code' in error)) return undefined
  const given = /^(?:Unknown option|Option) '(?<option>-{1,2}[^' ]*)/.exec(error.message)?.groups?.['option']
  if (given === undefined) return error.message
  if (error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    return `There is no option ${given}.${suggestName(given.replace(/^-+/, ''), Object.keys(options), '--')}`
  }
  const name = given.slice(2)
  const { type, placeholder = name.toUpperCase() } = options[name] ?? { type: 'string' }
  return type === 'boolean' ? `${given} takes no value.` : `${given} needs a value: ${given}=${placeholder}.`
}
