// Finds the side that is judged. It is apart from the peer, so that the memory of a probe includes nothing of the peer.
import { existsSync } from 'node:fs'
import type { SubjectModule } from './sides.ts'

const SUBJECT = new URL('./sluice.ts', import.meta.url)

/** The benchmark runs with the peer alone if this file does not exist. */
export async function findSubject(): Promise<SubjectModule | undefined> {
  if (!existsSync(SUBJECT)) return undefined
  return (await import(SUBJECT.href)) as SubjectModule
}
