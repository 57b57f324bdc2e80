// One short message about the result of an act.
import { signal } from '@preact/signals'
import { ApiError } from '../lib/api.ts'

export interface Toast {
  readonly tone: 'done' | 'fail'
  readonly text: string
  readonly detail?: string
  readonly link?: { readonly to: string; readonly text: string }
}

export const toast = signal<Toast | undefined>(undefined)
let timer: ReturnType<typeof setTimeout> | undefined

export function say(text: string, link?: Toast['link']): void {
  show({ tone: 'done', text, ...(link === undefined ? {} : { link }) }, 6_000)
}

/** `sayFailed` shows why an act did not happen, and what helps. */
export function sayFailed(error: unknown): void {
  if (error instanceof ApiError) show({ tone: 'fail', text: error.message, detail: error.fix }, 12_000)
  else throw error
}

export function dismissToast(): void {
  clearTimeout(timer)
  toast.value = undefined
}

function show(next: Toast, ms: number): void {
  clearTimeout(timer)
  toast.value = next
  timer = setTimeout(dismissToast, ms)
}

/** `act` performs an act and shows its failure; it returns whether the act happened. */
export async function act(perform: () => Promise<unknown>, done?: string, link?: Toast['link']): Promise<boolean> {
  try {
    await perform()
  } catch (error) {
    sayFailed(error)
    return false
  }
  if (done !== undefined) say(done, link)
  return true
}
