// The signed-in user: `null` if there is none, undefined before the first response.
import { computed, signal } from '@preact/signals'
import { ApiError, get, post, remove, whenSignedOut } from '../lib/api.ts'
import type { Session } from '../lib/types.ts'
import { forgetResources } from './resource.ts'

export const session = signal<Session | null | undefined>(undefined)
export const sessionError = signal<ApiError | undefined>(undefined)

/** A key with the role `read` sees no act at all. */
export const mayOperate = computed(() => session.value?.role === 'operate')

whenSignedOut(() => {
  session.value = null
})

export async function loadSession(): Promise<void> {
  sessionError.value = undefined
  try {
    session.value = await get<Session>('v1/session')
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.status === 401) session.value = null
    else sessionError.value = error
  }
}

export async function signIn(key: string): Promise<void> {
  session.value = await post<Session>('session', { key })
}

export async function signOut(): Promise<void> {
  await remove('session')
  forgetResources()
  session.value = null
}
