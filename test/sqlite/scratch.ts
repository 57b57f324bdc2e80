// Temporary files of a test, stores that are closed after it, and an independent view of a file.
import { spawn, type ChildProcess } from 'node:child_process'
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { onTestFinished } from 'vitest'
import { createEventToStore, type EventOverrides } from '../conformance/builders.ts'
import type { AppendResult, EventToStore, Store } from '../../src/store/contract/index.ts'
import { openStore, type OpenStoreOptions } from '../../src/store/open.ts'
import { ownFolder } from '../temporary-folder.ts'

export { ownFolder as freshFolder } from '../temporary-folder.ts'

export function freshFile(): string {
  return join(ownFolder(), 'events.db')
}

export async function open(file: string, options: OpenStoreOptions = {}): Promise<Store> {
  const store = await openStore(`sqlite:${file}`, options)
  onTestFinished(() => store.close())
  return store
}

/** A connection beside the store. */
export function connect(file: string): DatabaseSync {
  const db = new DatabaseSync(file)
  onTestFinished(() => void (db.isOpen && db.close()))
  return db
}

export function hashOf(file: string): string {
  return hash('sha256', readFileSync(file))
}

export async function send(store: Store, ...events: readonly EventToStore[]): Promise<readonly AppendResult[]> {
  return (await store.append({ routes: 1, events })).results
}

/** Its id is its name. */
export function event(name: string, words: EventOverrides = {}): EventToStore {
  return createEventToStore(name, { id: name, key: name, ...words }, 0)
}

/** Runs one of the programs beside this file, and kills it after the test if it still runs. */
export function start(program: string, args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, program), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** The first line of its output, as JSON. */
export async function firstLine<T>(child: ChildProcess): Promise<T> {
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    if (text.includes('\n')) break
  }
  return JSON.parse(text.split('\n', 1)[0] ?? '') as T
}
