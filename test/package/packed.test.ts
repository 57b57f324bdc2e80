// The content of `npm pack`: everything that a user loads, and nothing else.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, extname, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(`${root}/${file}`, 'utf8')

/** Files whose names are computed when they are loaded. */
const THREADS = ['dist/store/sqlite/write-back-thread.js', 'dist/deliver/transform/thread.js']

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
  readonly scripts: Readonly<Record<string, string>>
}

const manifest = JSON.parse(read('package.json')) as Manifest
const entries = Object.values(manifest.exports).flatMap((entry) => (typeof entry === 'string' ? [] : [entry]))

async function packed(): Promise<{ readonly files: readonly string[]; readonly unpackedSize: number }> {
  // The scripts of the package need not run: `npm test` begins with the build.
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts']
  const { stdout } = await promisify(execFile)('npm', args, { cwd: root, maxBuffer: 2 ** 24 })
  const [pack] = JSON.parse(stdout) as readonly { files: readonly { path: string }[]; unpackedSize: number }[]
  return { files: pack?.files.map(({ path }) => path) ?? [], unpackedSize: pack?.unpackedSize ?? 0 }
}

/** The files that are reachable from some files through relative imports, including these. */
function reached(from: readonly string[], nameOf: (specifier: string) => string): ReadonlySet<string> {
  const found = new Set<string>()
  const waiting = [...from]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue
    found.add(file)
    for (const [, specifier = ''] of read(file).matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g)) {
      // Compiled code does not import `.ts`: that is in a text, e.g. in the test that `sluice init` writes.
      const isText = file.endsWith('.js') && specifier.endsWith('.ts')
      if (!isText) waiting.push(posix.join(dirname(file), nameOf(specifier)))
    }
  }
  return found
}

const pack = packed()
const PAGE = 'dist/dashboard/'
const plain = (path: string): string => posix.normalize(path)

test('the package has the code that its entries and its command load, and no other', async () => {
  const { files } = await pack
  const roots = [...entries.map((entry) => entry.default), ...Object.values(manifest.bin), ...THREADS]
  const loaded = reached(roots.map(plain), (one) => one)
  const code = files.filter((file) => file.startsWith('dist/') && file.endsWith('.js') && !file.startsWith(PAGE))
  expect(code.toSorted()).toEqual([...loaded].toSorted())
})

test('the package has the page of the dashboard, with the files that it loads', async () => {
  const { files } = await pack
  const named = [...read(`${PAGE}index.html`).matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(
    ([, file]) => `${PAGE}${file}`,
  )
  expect(named.length).toBeGreaterThan(1)
  expect(files).toEqual(expect.arrayContaining([`${PAGE}index.html`, ...named]))
})

test('the package has the types that its entries lead to, and no other', async () => {
  const { files } = await pack
  const typed = reached(
    entries.map(({ types }) => plain(types)),
    (one) => one.replace(/\.[jt]s$/, '.d.ts'),
  )
  expect(files.filter((file) => file.endsWith('.d.ts')).toSorted()).toEqual([...typed].toSorted())
})

test('the package has no source maps, no tests, no sources and no results of measurements', async () => {
  const { files, unpackedSize } = await pack
  expect(files.filter((file) => /\.map$|\.test\.|\.db\b|^(?:src|test|examples|node_modules|\.)/.test(file))).toEqual([])
  expect(files.filter((file) => /^(?:bench|proof)\//.test(file))).toEqual(['bench/README.md', 'proof/README.md'])
  expect(read('dist/index.js')).not.toContain('sourceMappingURL')
  // Of the other files in dist/, the code reads the SQL.
  const others = files.filter(
    (file) => file.startsWith('dist/') && !file.startsWith(PAGE) && !/\.(?:js|d\.ts)$/.test(file),
  )
  expect(new Set(others.map((file) => extname(file)))).toEqual(new Set(['.lua', '.sql']))
  expect(files.length).toBeLessThan(800)
  expect(unpackedSize).toBeLessThan(3_500_000)
})

test('npm pack and npm publish build first', () => {
  expect(manifest.scripts['prepack']).toBe('node scripts/build.mjs')
})
