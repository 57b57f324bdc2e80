// ARCHITECTURE.md describes the actual tree: the files of its walks exist, and no folders import each other in a circle.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')

const FILES = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => `src/${file}`)

function importsOf(file: string): readonly string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const found = text.matchAll(/(?:from|import\()\s*'(\.{1,2}\/[^']+)'/g)
  return [...found].map(([, path = '']) => normalize(join(dirname(file), path)))
}

function walk(name: string): readonly string[] {
  const list = page.split(`<!-- walk: ${name} -->`)[1]?.split(/^#/m)[0] ?? ''
  return [...list.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file = '']) => file)
}

/** A folder of src/, or a file beside the folders. */
const roomOf = (file: string): string => file.split('/')[1] ?? ''

describe('the walks', () => {
  it('append on PostgreSQL takes at most twelve files, and all exist', () => {
    const files = walk('append')
    expect(files.length).toBeGreaterThan(5)
    expect(files.length).toBeLessThanOrEqual(12)
    expect(files.filter((file) => !FILES.includes(file))).toEqual([])
  })

  it('a delivery goes in one direction: no file imports one that comes before it', () => {
    const files = walk('delivery')
    expect(files.length).toBeGreaterThan(5)
    expect(files.filter((file) => !FILES.includes(file))).toEqual([])
    const back = files.flatMap((file, at) => importsOf(file).filter((path) => files.slice(0, at).includes(path)))
    expect(back).toEqual([])
  })

  it('every other file that the page names exists', () => {
    const named = [...page.matchAll(/`((?:[\w-]+\/)+[\w-]+\.ts)`/g)].map(([, file = '']) => file)
    expect(named.filter((file) => !FILES.includes(file) && !FILES.includes(`src/${file}`))).toEqual([])
  })
})

describe('the folders', () => {
  it('do not import each other in a circle', () => {
    const graph = new Map<string, Set<string>>()
    for (const file of FILES) {
      const from = roomOf(file)
      const to = graph.get(from) ?? new Set()
      for (const path of importsOf(file)) if (roomOf(path) !== from) to.add(roomOf(path))
      graph.set(from, to)
    }
    const circles: string[] = []
    const done = new Set<string>()
    const visit = (room: string, path: readonly string[]): void => {
      if (path.includes(room)) return void circles.push([...path.slice(path.indexOf(room)), room].join(' → '))
      if (done.has(room)) return
      for (const next of graph.get(room) ?? []) visit(next, [...path, room])
      done.add(room)
    }
    for (const room of graph.keys()) visit(room, [])
    expect(circles).toEqual([])
  })

  it('are all named in the page, and at most five files are beside them', () => {
    const rooms = new Set(FILES.map(roomOf))
    const files = [...rooms].filter((room) => room.endsWith('.ts'))
    expect(files.length).toBeLessThanOrEqual(5)
    const folders = [...rooms].filter((room) => !room.endsWith('.ts'))
    expect(folders.filter((folder) => !page.includes(`${folder}/`))).toEqual([])
  })
})
