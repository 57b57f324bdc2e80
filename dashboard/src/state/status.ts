// The state of the whole app, which the navigation and several pages show. One poll serves all of them.
import { effect, signal } from '@preact/signals'
import { ApiError, get } from '../lib/api.ts'
import { learnTime } from '../lib/clock.ts'
import type { Status } from '../lib/types.ts'
import { repeat } from './resource.ts'
import { session } from './session.ts'

const EVERY = 2_000

export const status = signal<Status | undefined>(undefined)
export const statusError = signal<ApiError | undefined>(undefined)

let isReading = false

export async function readStatus(): Promise<void> {
  if (isReading) return
  isReading = true
  try {
    const next = await get<Status>('v1/status')
    learnTime(next.now)
    status.value = next
    statusError.value = undefined
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    statusError.value = error
  } finally {
    isReading = false
  }
}

export function startStatus(): void {
  effect(() => {
    if (session.value === null || session.value === undefined) return undefined
    void readStatus()
    return repeat(() => void readStatus(), EVERY)
  })
}
