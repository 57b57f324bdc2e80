// Compiles src/ to dist/ and builds dashboard/ into dist/dashboard/, each only if its inputs have changed since the last time.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cache, filesIn, filesUnder, main, readJson, root, run, Stop } from './lib.mjs'
import { setup } from './setup.mjs'

const dist = join(root, 'dist')
const pages = join(dist, 'dashboard')

export async function build() {
  const code = stampOf('build', ['tsconfig.json', 'tsconfig.build.json'], 'src')
  const page = stampOf(
    'dashboard',
    ['dashboard/index.html', 'dashboard/vite.config.ts', 'dashboard/tsconfig.json'],
    'dashboard/src',
  )
  const codeIsNew = !existsSync(dist) || !code.isCurrent()
  const pageIsNew = !existsSync(pages) || !page.isCurrent()
  if (!codeIsNew && !pageIsNew) return

  // Builds into another folder and then moves it, so that dist/ is never half written and has no leftovers of deleted sources.
  const next = join(root, `.dist-${process.pid}`)
  try {
    if (codeIsNew) await compile(next)
    if (pageIsNew) await bundle(join(next, 'dashboard'))
    else cpSync(pages, join(next, 'dashboard'), { recursive: true })
    if (codeIsNew) move(next, dist)
    else move(join(next, 'dashboard'), pages)
  } finally {
    rmSync(next, { recursive: true, force: true })
  }
  code.write()
  page.write()
}

async function compile(into) {
  const { code } = await run('tsc', ['-p', 'tsconfig.build.json', '--outDir', into])
  if (code !== 0) throw new Stop('The build failed; the compiler says why above. dist/ is as it was.')
  // Copies SQL and other texts that the code reads at run time.
  cpSync(join(root, 'src'), into, { recursive: true, filter: (path) => extname(path) !== '.ts' })
  removeUnused(into)
}

async function bundle(into) {
  const args = ['build', '--config', 'dashboard/vite.config.ts', '--outDir', into, '--logLevel', 'warn']
  const { code } = await run('vite', args)
  if (code !== 0) throw new Stop('The dashboard was not built; the bundler says why above. dist/ is as it was.')
}

function move(from, to) {
  rmSync(to, { recursive: true, force: true })
  renameSync(from, to)
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

/** `stampOf` remembers which inputs a part of dist/ was made of. */
function stampOf(name, settings, folder) {
  const file = join(cache, name)
  const hash = createHash('sha256')
  const shared = ['package.json', 'package-lock.json', 'scripts/build.mjs']
  const inputs = [...shared, ...settings].map((path) => join(root, path))
  for (const path of [...inputs, ...filesUnder(folder)]) hash.update(`${path}\0`).update(readFileSync(path))
  const stamp = hash.digest('hex')
  return {
    isCurrent: () => existsSync(file) && readFileSync(file, 'utf8') === stamp,
    write() {
      mkdirSync(cache, { recursive: true })
      writeFileSync(file, stamp)
    },
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(async () => {
    await setup()
    await build()
  })
}
