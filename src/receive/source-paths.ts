// `SourcePaths` finds the source of a request by its path. A source has one path, or all paths below one that ends in `/*`.
import type { Problem } from './problem.ts'
import type { DeclaredSource } from './source-options.ts'

export class SourcePaths {
  readonly #exact = new Map<string, DeclaredSource>()
  /** Sources whose path ends in `/*`, the longest path first. */
  #prefixes: readonly DeclaredSource[] = []

  get sources(): readonly DeclaredSource[] {
    return [...this.#exact.values(), ...this.#prefixes]
  }

  add(source: DeclaredSource): void {
    if (!source.path.endsWith('/*')) this.#exact.set(source.path, source)
    else this.#prefixes = [...this.#prefixes, source].toSorted((one, other) => other.path.length - one.path.length)
  }

  find(path: string): DeclaredSource | undefined {
    return this.#exact.get(path) ?? this.#prefixes.find((source) => findSuffix(source, path) !== undefined)
  }
}

/** `findUnknownSuffix` returns why a source has nothing at this path, or undefined if it takes requests there. */
export function findUnknownSuffix(source: DeclaredSource, path: string): Problem | undefined {
  const { name, suffixes } = source
  const suffix = findSuffix(source, path) ?? ''
  if (suffixes === undefined || suffixes.includes(suffix)) return undefined
  const what = `The source ${name} has no path ending in ${suffix.slice(0, 200)}; it has ${suffixes.join(', ')}.`
  return { code: 'SOURCE_UNKNOWN', what, fix: 'Compare the URL at the provider with the suffixes of the source.' }
}

/** The part of the path below the source's own. */
function findSuffix({ path: own }: DeclaredSource, path: string): string | undefined {
  const prefix = own.slice(0, -1)
  return own.endsWith('/*') && path.length > prefix.length && path.startsWith(prefix)
    ? path.slice(prefix.length)
    : undefined
}
