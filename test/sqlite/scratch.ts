// A folder for the files of one test file, stores that are closed after each test, and what a second look sees.
import { spawn, type ChildProcess } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach } from 'vitest'
import { newEvent, type EventWords } from '../../src/store/conformance/vocabulary.ts'
import type { Appended, NewEvent, Store } from '../../src/store/contract/index.ts'
import { openStore, type OpenOptions } from '../../src/store/open.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-sqlite-'))
const opened: { close(): unknown }[] = []
let files = 0

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

export function freshFolder(): string {
  return mkdtempSync(join(folder, 'f-'))
}

export function freshFile(): string {
  return join(folder, `${files++}.db`)
}

export async function open(file: string, options: OpenOptions = {}): Promise<Store> {
  const store = await openStore(`sqlite:${file}`, options)
  opened.push(store)
  return store
}

/** A connection that knows nothing of the store. */
export function connect(file: string): DatabaseSync {
  const db = new DatabaseSync(file)
  opened.push({ close: () => db.isOpen && db.close() })
  return db
}

export function hashOf(file: string): string {
  return hash('sha256', readFileSync(file))
}

export async function send(store: Store, ...events: readonly NewEvent[]): Promise<readonly Appended[]> {
  return (await store.append({ routes: 1, events })).results
}

/** Its id is its name. */
export function event(name: string, words: EventWords = {}): NewEvent {
  return newEvent(name, { id: name, key: name, ...words }, 0)
}

/** Runs one of the programs beside this file; it is killed after the test, should it still live. */
export function start(program: string, args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, program), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  opened.push({ close: () => child.kill('SIGKILL') })
  return child
}

/** The first line it prints, as JSON. */
export async function firstLine<T>(child: ChildProcess): Promise<T> {
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    if (text.includes('\n')) break
  }
  return JSON.parse(text.split('\n', 1)[0] ?? '') as T
}
