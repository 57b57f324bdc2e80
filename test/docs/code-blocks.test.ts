// Each TypeScript block of the documents compiles as a user would write it: against the built package, under `strict`.
// A fragment takes what stands around it, e.g. `app`, from surroundings.ts. A block below a comment with a path is that file.
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const FOLDERS = ['docs', 'examples', 'bench', 'proof']
const OPTIONS = {
  target: 'es2024',
  lib: ['es2024', 'es2025.collection', 'es2025.iterator', 'esnext.disposable'],
  module: 'nodenext',
  types: ['node'],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  rewriteRelativeImportExtensions: true,
}

/** What a file of the tests imports instead of the package. */
const OF_THE_SOURCE = /'(?:\.\.\/)+src(\/\w+)?\/index\.ts'/g

/** Next.js rejects imports with this ending, unless tsconfig.json allows it. */
const ENDING = /(?<='\.[^']+)\.ts(?=')/g

interface Block {
  readonly document: string
  readonly line: number
  readonly code: string
  /** The file that the block quotes, which the compiler and its own tests check. */
  readonly file: string | undefined
}

describe('blocks of code in the documents', () => {
  it('that name a file are that file, without its first comment', async () => {
    const quotes = (await blocksOf(await documents())).filter(({ file }) => file !== undefined)
    expect(quotes.length).toBeGreaterThan(10)
    for (const { document, code, file } of quotes) {
      const source = (await readFile(join(root, file!), 'utf8')).replaceAll(OF_THE_SOURCE, "'sluice$1'")
      const text = file!.includes('/next/') ? source.replaceAll(ENDING, '') : source
      expect(text, document).toBe(`${/^(?:(?:\/\/|--) .*\n)+/.exec(text)?.[0] ?? ''}${code}`)
    }
  })

  it('compile under strict if they are TypeScript', async () => {
    const blocks = (await blocksOf(await documents())).filter(({ file }) => file === undefined)
    expect(blocks.length).toBeGreaterThan(30)
    expect(await errorsOf(blocks)).toEqual([])
  })

  it('a block with a type error is found, with its place in the document', async () => {
    const code = "import { github } from 'sluice/sources'\napp.source('hub', github({ secret: 5 }))\n"
    const errors = await errorsOf([{ document: 'docs/wrong.md', line: 10, code, file: undefined }])
    expect(errors).toEqual([
      expect.stringMatching(/^docs\/wrong\.md:11: error TS2322: Type 'number' is not assignable/),
    ])
  })
})

async function documents(): Promise<readonly string[]> {
  const own = (await readdir(root)).filter((name) => name.endsWith('.md'))
  const inFolders = FOLDERS.map(async (folder) => {
    const files = await readdir(join(root, folder), { recursive: true })
    return files.filter((name) => name.endsWith('.md')).map((name) => `${folder}/${name}`)
  })
  return [...own, ...(await Promise.all(inFolders)).flat()]
}

async function blocksOf(files: readonly string[]): Promise<readonly Block[]> {
  const blocks = await Promise.all(
    files.map(async (document) => {
      const text = await readFile(join(root, document), 'utf8')
      const found = text.matchAll(/(?:^<!-- (\S+\/\S+) -->\n\n)?^```(ts|sql)\n(.*?)^```$/gms)
      return [...found].flatMap(({ index, 0: all, 1: file, 2: language, 3: code = '' }) => {
        if (language !== 'ts' && file === undefined) return []
        const line = text.slice(0, index + all.indexOf('```')).split('\n').length + 1
        return [{ document, line, code, file }]
      })
    }),
  )
  return blocks.flat()
}

/** `errorsOf` compiles the blocks as modules of a user's project and returns the compiler's errors, by place in the document. */
async function errorsOf(blocks: readonly Block[]): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-blocks-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await copyFile(join(root, 'test/docs/surroundings.ts'), join(folder, 'surroundings.ts'))
  const names = blocks.map((_, at) => `block-${at}.ts`)
  await Promise.all(blocks.map(({ code }, at) => writeFile(join(folder, names[at]!), `${code}export {}\n`)))
  const paths = {
    sluice: [join(root, 'dist/index.d.ts')],
    'sluice/sources': [join(root, 'dist/sources/index.d.ts')],
    'sluice/testing': [join(root, 'dist/testing/index.d.ts')],
  }
  const config = { compilerOptions: { ...OPTIONS, paths }, files: ['surroundings.ts', ...names] }
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const output = await new Promise<string>((done) => {
    execFile(join(root, 'node_modules/.bin/tsc'), ['-p', folder, '--pretty', 'false'], { cwd: folder }, (_, text) =>
      done(text),
    )
  })
  return output.split('\n').flatMap((line) => {
    const [, at, row, message] = /^block-(\d+)\.ts\((\d+),\d+\): (.*)$/.exec(line) ?? []
    if (message === undefined) return /error TS/.test(line) ? [line] : []
    const { document, line: first } = blocks[Number(at)]!
    return [`${document}:${first + Number(row) - 1}: ${message}`]
  })
}
