// Temporary folders of tests: real files that are removed at the end of the test, even if many test files share a process.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The address of a new database file. */
export function ownFile(): string {
  return `sqlite:${join(ownFolder(), 'events.db')}`
}
