// The budget of the built dashboard: what a first visit loads, and that it loads nothing from elsewhere.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'

const FOLDER = fileURLToPath(new URL('../../dist/dashboard/', import.meta.url))
const KB = 1_024

const read = (path: string): string => readFileSync(FOLDER + path, 'utf8')
const html = read('index.html')
const assets = readdirSync(`${FOLDER}assets`)
const addresses = [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, address = '']) => address)

/** A script with everything that it imports statically. */
function withImports(name: string, found: Set<string> = new Set()): ReadonlySet<string> {
  if (found.has(name)) return found
  found.add(name)
  for (const [, next = ''] of read(`assets/${name}`).matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g)) {
    withImports(next, found)
  }
  return found
}

function zipped(paths: Iterable<string>): number {
  return [...paths].reduce((sum, path) => sum + gzipSync(readFileSync(FOLDER + path)).length, 0)
}

const entry = addresses.find((address) => address.endsWith('.js'))?.slice('assets/'.length) ?? ''

/** Everything that a first visit loads which begins on the page in this script. */
function firstLoad(page: string): number {
  const scripts = new Set([...withImports(entry), ...withImports(page)])
  const others = addresses.filter((address) => !address.endsWith('.js'))
  return zipped(['index.html', ...others, ...Array.from(scripts, (name) => `assets/${name}`)])
}

it('loads less than 100 KB compressed, on whichever page a visit begins', () => {
  const scripts = assets.filter((name) => name.endsWith('.js'))
  expect(scripts.length).toBeGreaterThan(8)
  expect(withImports(entry).size).toBeGreaterThan(1)
  const sizes = scripts.map((name) => [name, firstLoad(name)] as const)
  expect(sizes.filter(([, size]) => size >= 100 * KB)).toEqual([])
})

it('has less than 160 KB compressed in all, with every page and editor', () => {
  expect(zipped(['index.html', ...assets.map((name) => `assets/${name}`)])).toBeLessThan(160 * KB)
})

it('loads its first page from one HTML, one stylesheet and one script', () => {
  const all = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address)
  expect(all.every((address) => address.startsWith('./assets/'))).toBe(true)
  expect(addresses.filter((address) => address.endsWith('.css'))).toHaveLength(1)
  expect(html).not.toMatch(/<script(?![^>]*src=)/)
  expect(html).not.toMatch(/<style|style=/)
})
