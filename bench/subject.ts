// Finds the side that is being judged; apart from the peer, so that the memory of a probe holds nothing of the peer's.
import { existsSync } from 'node:fs'
import type { SubjectModule } from './sides.ts'

const SUBJECT = new URL('./sluice.ts', import.meta.url)

/** The benchmark runs with the peer alone as long as this file is not there. */
export async function findSubject(): Promise<SubjectModule | undefined> {
  if (!existsSync(SUBJECT)) return undefined
  return (await import(SUBJECT.href)) as SubjectModule
}
