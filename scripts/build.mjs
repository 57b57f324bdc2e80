// Compiles src/ to dist/, only if something that goes into it has changed since the last time.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cache, filesIn, filesUnder, main, readJson, root, run, Stop } from './lib.mjs'
import { setup } from './setup.mjs'

const dist = join(root, 'dist')
const stamp = join(cache, 'build')

export async function build() {
  const inputs = fingerprint()
  if (existsSync(dist) && existsSync(stamp) && readFileSync(stamp, 'utf8') === inputs) return

  // Compiles into another folder and then moves it, so that dist/ is never half written and has no leftovers of deleted sources.
  const next = join(root, `.dist-${process.pid}`)
  try {
    const { code } = await run('tsc', ['-p', 'tsconfig.build.json', '--outDir', next])
    if (code !== 0) throw new Stop('The build failed; the compiler says why above. dist/ is as it was.')
    // Copies SQL and other texts that the code reads at run time.
    cpSync(join(root, 'src'), next, { recursive: true, filter: (path) => extname(path) !== '.ts' })
    removeUnused(next)
    rmSync(dist, { recursive: true, force: true })
    renameSync(next, dist)
  } finally {
    rmSync(next, { recursive: true, force: true })
  }
  mkdirSync(cache, { recursive: true })
  writeFileSync(stamp, inputs)
}

/** `removeUnused` removes modules that have only types, and declarations that no entry of the package leads to. */
function removeUnused(folder) {
  const entries = Object.values(readJson('package.json').exports).flatMap((entry) => entry.types ?? [])
  const typed = declarationsFrom(entries.map((entry) => join(folder, relative('dist', entry))))
  for (const file of filesIn(folder)) {
    const isUnused = file.endsWith('.d.ts') ? !typed.has(file) : file.endsWith('.js') && isEmpty(file)
    if (isUnused) rmSync(file)
  }
}

function declarationsFrom(entries) {
  const found = new Set()
  const waiting = [...entries]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue
    found.add(file)
    for (const [, specifier] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g)) {
      waiting.push(join(dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts')))
    }
  }
  return found
}

function isEmpty(file) {
  return (
    readFileSync(file, 'utf8')
      .replaceAll(/^\s*\/\/.*$/gm, '')
      .trim() === 'export {};'
  )
}

function fingerprint() {
  const hash = createHash('sha256')
  const settings = [
    'tsconfig.json',
    'tsconfig.build.json',
    'package.json',
    'package-lock.json',
    'scripts/build.mjs',
  ].map((file) => join(root, file))
  for (const file of [...settings, ...filesUnder('src')]) hash.update(`${file}\0`).update(readFileSync(file))
  return hash.digest('hex')
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(async () => {
    await setup()
    await build()
  })
}
