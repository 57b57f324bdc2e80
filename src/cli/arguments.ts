// What a command is given: options by name and words by place, read by its own declaration. Nothing else is taken.
import { parseArgs } from 'node:util'

export interface Option {
  readonly type: 'string' | 'boolean'
  readonly says: string
  /** What stands for the value in the usage: `--flow=FLOW`. */
  readonly value?: string
  /** May be given several times. */
  readonly multiple?: boolean
}

export type Options = Readonly<Record<string, Option>>

/** Of every command. */
export const COMMON: Options = {
  json: { type: 'boolean', says: 'print the answer of the API as it is' },
  url: { type: 'string', value: 'URL', says: 'of the running server; SLUICE_URL, or where the configuration listens' },
  'api-key': { type: 'string', value: 'KEY', says: 'of the API; SLUICE_KEY is safer: others see what is typed here' },
  config: { type: 'string', value: 'FILE', says: 'another file than ./sluice.config.ts' },
  verbose: { type: 'boolean', says: 'say who is asked' },
  help: { type: 'boolean', says: 'say this' },
}

export class Given {
  readonly words: readonly string[]
  readonly #values: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>

  constructor(args: readonly string[], options: Options) {
    const { values, positionals } = parseArgs({ args: [...args], options: parsed(options), allowPositionals: true })
    this.words = positionals
    this.#values = values
  }

  is(name: string): boolean {
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

  /** Those of these names that were given, under the names that the API has for them. */
  texts(names: readonly string[]): Readonly<Record<string, string>> {
    return Object.fromEntries(names.flatMap((name) => [[name, this.text(name)] as const]).filter(isGiven))
  }
}

function isGiven(entry: readonly [string, string | undefined]): entry is readonly [string, string] {
  return entry[1] !== undefined
}

function parsed(options: Options): Record<string, { type: 'string' | 'boolean'; multiple: boolean }> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { type, multiple = false }]) => [name, { type, multiple }]),
  )
}
