// A folder of a test's own: real files, gone when the test is over, also where many files of tests share a process.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The address of a database file that nobody has used yet. */
export function ownFile(): string {
  return `sqlite:${join(ownFolder(), 'events.db')}`
}
