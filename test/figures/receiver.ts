// Starts the receiver, reads its times, and ends it.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Answer, Asked, Seen } from './receiver-child.ts'

const CHILD = fileURLToPath(new URL('./receiver-child.ts', import.meta.url))

export interface Receiver {
  readonly url: string
  howMany(): Promise<number>
  what(): Promise<Seen>
  stop(): void
}

export async function receiver(): Promise<Receiver> {
  const child = fork(CHILD, { execArgv: [] })
  const answer = async (): Promise<Answer> => {
    const [said] = (await once(child, 'message')) as [Answer]
    return said
  }
  const ask = (asked: Asked): Promise<Answer> => {
    const answered = answer()
    child.send(asked)
    return answered
  }
  const port = (await answer()) as number
  return {
    url: `http://127.0.0.1:${port}/`,
    howMany: async () => (await ask('how many')) as number,
    what: async () => (await ask('what')) as Seen,
    stop: () => child.disconnect(),
  }
}
